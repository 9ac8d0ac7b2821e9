import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button.tsx";

/** An entry of a menu. */
export interface MenuEntry {
  readonly title: string;
  readonly isDangerous?: boolean;
  readonly run: () => unknown;
}

/** A button that shows further actions. Escape, a click elsewhere and a choice close them. */
export function Menu({ label, entries }: { label: string; entries: readonly MenuEntry[] }) {
  const box = useRef<HTMLDetailsElement>(null);
  const close = (): void => {
    if (box.current?.open !== true) return;
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  };
  useEffect(() => {
    const onClick = (event: MouseEvent): void => {
      if (event.target instanceof Node && box.current?.contains(event.target) !== true && box.current)
        box.current.open = false;
    };
    addEventListener("click", onClick);
    return () => removeEventListener("click", onClick);
  }, []);
  return (
    <details
      ref={box}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
    >
      <summary class="button quiet" aria-label={label}>
        ⋯
      </summary>
      <div class="entries">
        {entries.map(({ title, isDangerous = false, run }) => (
          <Button
            key={title}
            kind={isDangerous ? "danger" : "quiet"}
            onClick={() => {
              close();
              return run();
            }}
          >
            {title}
          </Button>
        ))}
      </div>
    </details>
  );
}
