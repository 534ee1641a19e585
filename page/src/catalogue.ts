// Models and chips of the catalogue, asked once.
import { useEffect, useState } from "preact/hooks";
import { ask, refused } from "./engine/ask";
import type { ChipsResults, ModelsResults } from "./engine/schema";

type Model = NonNullable<ModelsResults["models"]>[number];
type Chip = NonNullable<ChipsResults["chips"]>[number];
export interface Catalogue {
  version: string;
  models: Model[];
  chips: Chip[];
}
let catalogue: Promise<Catalogue> | undefined;
async function load(): Promise<Catalogue> {
  const signal = new AbortController().signal;
  const [models, chips] = await Promise.all([
    ask({ verb: "models", arguments: {} }, signal),
    ask({ verb: "chips", arguments: {} }, signal),
  ]);
  return {
    version: refused(models) ? "" : models.version,
    models: refused(models) ? [] : (models.results.models ?? []),
    chips: refused(chips) ? [] : (chips.results.chips ?? []),
  };
}
export function useCatalogue(): Catalogue | null {
  const [state, set] = useState<Catalogue | null>(null);
  useEffect(() => {
    catalogue ??= load();
    catalogue.then(set, () => {
      catalogue = undefined; // asked again by the next view
    });
  }, []);
  return state;
}
