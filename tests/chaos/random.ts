// One seed, one run: the same rounds in the same order. What the browser makes of them is its own.

/** A generator of numbers that a seed decides (mulberry32). */
export class Random {
  constructor(private state: number) {}

  /** A number from 0 up to and without `bound`. */
  below(bound: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * bound);
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error("nothing to pick from");
    return choices[this.below(choices.length)]!;
  }
}
