import { sig, thin } from "../../text/format";

export const area = (x: number): string => (x === 0 ? "0" : `${sig(x)}${thin}mm²`);
/** The engine's words with areas as the page writes them. */
export const words = (text: string): string => text.replaceAll(/ mm2\b/g, `${thin}mm²`);
