// Which multipliers of a weight-stationary array work in a cycle: a row of X enters row r of the array r cycles after the
// first and moves one column a cycle, so that multiplier (r, c) meets it r + c cycles after it entered.

export interface Run {
  rows: number;
  columns: number;
  m: number;
  k: number;
  n: number;
  tiles: number;
  load: number;
  /** Cycles between the starts of two tiles. */
  interval: number;
}
export type State = "idle" | "useful" | "padded";

/** What multiplier (row, column) does in a cycle, and for which row of X and which tile. */
export function stateAt(
  run: Run,
  cycle: number,
  row: number,
  column: number,
): { state: State; x: number; tile: number } {
  const since = cycle - run.load - row - column;
  const tile = Math.floor(since / run.interval);
  const x = since - tile * run.interval;
  if (since < 0 || tile >= run.tiles || x >= run.m) return { state: "idle", x: -1, tile: -1 };
  const deep = Math.ceil(run.k / run.rows);
  const [kTile, nTile] = [tile % deep, Math.floor(tile / deep)];
  const padded = kTile * run.rows + row >= run.k || nTile * run.columns + column >= run.n;
  return { state: padded ? "padded" : "useful", x, tile };
}
export function busyAt(run: Run, cycle: number): { useful: number; padded: number } {
  let useful = 0;
  let padded = 0;
  for (let row = 0; row < run.rows; row++) {
    for (let column = 0; column < run.columns; column++) {
      const { state } = stateAt(run, cycle, row, column);
      if (state === "useful") useful += 1;
      else if (state === "padded") padded += 1;
    }
  }
  return { useful, padded };
}
