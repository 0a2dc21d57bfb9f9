/**
 * The 2,000 people of the demo: generated, and the same on every machine.
 * Owns the field list and the seed. The mock server keeps no data, so these are its first state too.
 * @import { Contact, Field } from "./types.js"
 */

export const COUNT = 2000;
export const OWNERS = ["Amara Okafor", "Ben Ito", "Carla Duarte", "Dev Menon", "Elin Sund", "Farid Haddad", "Grace Kim", "Hugo Weiss"];
export const STAGES = ["Lead", "Qualified", "Proposal", "Customer", "Dormant"];

/** @type {readonly { field: Field, label: string, kind: "text" | "email" | "choice", choices?: readonly string[] }[]} */
export const FIELDS = [
  { field: "name", label: "Name", kind: "text" },
  { field: "company", label: "Company", kind: "text" },
  { field: "email", label: "Email", kind: "email" },
  { field: "owner", label: "Owner", kind: "choice", choices: OWNERS },
  { field: "stage", label: "Stage", kind: "choice", choices: STAGES },
  { field: "city", label: "City", kind: "text" },
];

const FIRST = ("Ada Adaeze Aiko Alba Amir Anders Anika Arjun Asha Astrid Bashir Beatriz Bruno Camille Celeste Chidi Clara Daniel Dara Diego Elena Elias " +
  "Emeka Esther Fatima Felix Freya Gabriel Hana Hassan Helena Ibrahim Ines Ingrid Isaac Ivan Jana Jonas Julia Kaito Karim Keiko Lars Leila Lena Liam " +
  "Lucia Magnus Malik Maren Marta Mateo Maya Mina Nadia Naveen Nina Noah Noor Olga Omar Oscar Paula Petra Priya Rafael Rania Rosa Ruben Samir Sara Selma " +
  "Sofia Soren Tariq Tessa Thandi Tomas Ulrik Valeria Vera Viktor Wanda Yara Yusuf Zainab Zoe").split(" ");
const LAST = ("Abbott Adeyemi Almeida Andersen Arslan Bakker Banerjee Bauer Bergman Bianchi Castro Chen Costa Dahl Demir Diallo Dubois Eriksen Farah Ferrari " +
  "Fischer Fontaine Garcia Greco Gupta Haas Hansen Hoffman Holm Ibarra Ivanova Jansen Jensen Kaya Keller Khan Kovacs Kowalski Kumar Larsen Laurent Lefevre " +
  "Lim Lindqvist Lopez Marino Martin Mbeki Mendes Meyer Moreau Mori Nakamura Nguyen Novak Nyberg Obi Okada Olsen Ortiz Osei Park Patel Pereira Petrov Rahman " +
  "Ramos Reyes Ricci Rossi Sato Schmidt Silva Singh Sorensen Suzuki Tanaka Torres Tran Vargas Virtanen Visser Weber Wolf Yamada Yilmaz Zhang Zimmer").split(" ");
const HOUSE = ("Alder Amber Arbor Atlas Beacon Birch Cedar Clover Cobalt Copper Delta Ember Fern Granite Harbor Hazel Heron Indigo Juniper Lantern Linden " +
  "Maple Meridian Mosaic North Onyx Orchard Osprey Pioneer Prairie Quartz Raven Ridge Saffron Sierra Slate Summit Tandem Timber Willow").split(" ");
const TRADE = ["Analytics", "Bank", "Bikes", "Clinic", "Energy", "Foods", "Freight", "Labs", "Legal", "Logistics", "Media", "Optics", "Robotics", "Studio", "Supply", "Travel"];
const CITIES = ("Accra|Amsterdam|Athens|Auckland|Barcelona|Bergen|Berlin|Bogota|Brussels|Buenos Aires|Cairo|Cape Town|Chicago|Copenhagen|Dublin|Geneva|Hamburg|" +
  "Helsinki|Istanbul|Kyoto|Lagos|Lima|Lisbon|London|Lyon|Madrid|Milan|Montreal|Mumbai|Nairobi|Oslo|Paris|Porto|Prague|Rotterdam|Seoul|Singapore|Stockholm|" +
  "Toronto|Utrecht|Vienna|Warsaw|Zurich").split("|");

/** A small seeded generator (mulberry32). @param {number} seed */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** @returns {Contact[]} ids 1 to 2,000, in order */
export function generateContacts() {
  const next = generator(20260401);
  /** @template T @param {readonly T[]} list @returns {T} */
  const pick = (list) => /** @type {T} */ (list[Math.floor(next() * list.length)]);
  const taken = new Map();
  /** @type {Contact[]} */
  const people = [];
  for (let id = 1; id <= COUNT; id += 1) {
    const first = pick(FIRST);
    const last = pick(LAST);
    const house = pick(HOUSE);
    const trade = pick(TRADE);
    const address = `${first[0]}.${last}@${house}.example`.toLowerCase();
    const seen = taken.get(address) ?? 0;
    taken.set(address, seen + 1);
    const email = seen === 0 ? address : address.replace("@", `${seen + 1}@`);
    people.push({ id, name: `${first} ${last}`, company: `${house} ${trade}`, email, owner: pick(OWNERS), stage: pick(STAGES), city: pick(CITIES) });
  }
  return people;
}

/** @param {string} name */
export function initials(name) {
  const words = name.split(" ");
  return `${words[0]?.[0] ?? ""}${words.length > 1 ? (words.at(-1)?.[0] ?? "") : ""}`;
}
