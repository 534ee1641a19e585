import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** What may be wider than its card scrolls inside it; only then it is a stop of the keyboard. */
export function Scroll({ children }: { children: ComponentChildren }): JSX.Element {
  const ref = useRef<HTMLDivElement>(null);
  const [wide, set] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = (): void => set(element.scrollWidth > element.clientWidth + 1);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    if (element.firstElementChild) observer.observe(element.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      class="scroll"
      ref={ref}
      tabIndex={wide ? 0 : undefined}
      role={wide ? "group" : undefined}
      aria-label={wide ? "Wide table" : undefined}
    >
      {children}
    </div>
  );
}
