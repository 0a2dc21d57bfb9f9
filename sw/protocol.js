/** The version of the messages between tabs and host; the value of each message's `paceline` field. */
export const PROTOCOL = 1;

/** The version of this package. */
export const VERSION = "0.1.0";

/** Makes a random UUID (version 4). Insecure contexts have no `crypto.randomUUID`, but they have this. */
export function uuid() {
  const hex = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte, at) => {
    const marked = at === 6 ? (byte & 0x0f) | 0x40 : at === 8 ? (byte & 0x3f) | 0x80 : byte;
    return marked.toString(16).padStart(2, "0");
  }).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
