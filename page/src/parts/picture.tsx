import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Player } from "./player";
import { Scroll } from "./scroll";

/** A drawing of the engine, in the colours of the page: its own style sheet is left out, its classes are those of ours. */
function parsed(text: string): SVGSVGElement | null {
  const plain = text.replace(/<style>[^]*?<\/style>/g, "").replace(/ style="[^"]*"/g, "");
  const root = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return null;
  for (const element of root.querySelectorAll("script, foreignObject")) element.remove();
  root.removeAttribute("font-family");
  return root as unknown as SVGSVGElement;
}

function Still({ text }: { text: string }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const svg = useMemo(() => parsed(text), [text]);
  useEffect(() => {
    if (svg) ref.current?.replaceChildren(svg);
  }, [svg]);
  return <div class="picture" ref={ref} />;
}

/** One picture, or one for each step. */
export function Pictures({ pictures, label }: { pictures: string[]; label: string }): JSX.Element {
  const [at, set] = useState(0);
  const shown = Math.min(at, pictures.length - 1);
  return (
    <>
      {pictures.length > 1 && <Player steps={pictures.length} at={shown} set={set} label={label} />}
      <Scroll>
        <Still text={pictures[shown] ?? ""} />
      </Scroll>
    </>
  );
}
