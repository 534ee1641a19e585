import type { Quantity } from "../../../engine/schema";
import { quantity } from "../../../text/format";

/** A value as the engine gives it: a quantity, a number or a word. */
export const value = (of: unknown): string =>
  of === null || of === undefined
    ? "–"
    : typeof of === "object"
      ? quantity((of as Quantity).value, (of as Quantity).unit, 3)
      : typeof of === "number"
        ? quantity(of, "", 3)
        : String(of);
