import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface OrderedProps<T> {
  /** Accessible name of the list. */
  readonly label: string;
  readonly items: readonly T[];
  readonly keyOf: (item: T, at: number) => string | number;
  readonly nameOf: (item: T) => string;
  readonly onMove: (from: number, to: number) => void;
  readonly children: (item: T, at: number) => ComponentChildren;
}

type Way = "up" | "down";

/** Moves an item of a list to another place. */
export function moved<T>(items: readonly T[], from: number, to: number): T[] {
  const rest = items.toSpliced(from, 1);
  return rest.toSpliced(to, 0, ...items.slice(from, from + 1));
}

/** A list whose order can be changed: by dragging an item at its handle, and by buttons, which the keyboard reaches. */
export function Ordered<T>({ label, items, keyOf, nameOf, onMove, children }: OrderedProps<T>) {
  const list = useRef<HTMLOListElement>(null);
  /** Where a button was used: the browser loses the focus of what is moved. */
  const used = useRef<{ readonly at: number; readonly way: Way } | null>(null);
  const [held, setHeld] = useState<number | null>(null);
  const [dragged, setDragged] = useState<number | null>(null);
  const [over, setOver] = useState<number | null>(null);
  const [told, setTold] = useState("");
  useEffect(() => {
    if (used.current === null) return;
    const { at, way } = used.current;
    used.current = null;
    const buttons = list.current?.children[at]?.querySelectorAll<HTMLButtonElement>(":scope > .order button");
    const [up, down] = buttons ?? [];
    const [same, other] = way === "up" ? [up, down] : [down, up];
    if (same?.disabled === false) same.focus();
    else other?.focus();
  }, [items]);
  const move = (from: number, to: number): void => {
    const item = items[from];
    if (from === to || item === undefined) return;
    setTold(`${nameOf(item)} is now ${to + 1} of ${items.length}`);
    onMove(from, to);
  };
  const press = (from: number, way: Way): void => {
    const to = way === "up" ? from - 1 : from + 1;
    used.current = { at: to, way };
    move(from, to);
  };
  const drop = (to: number): void => {
    if (dragged !== null) move(dragged, to);
    setDragged(null);
    setOver(null);
  };
  return (
    <>
      <ol class="ordered" aria-label={label} ref={list}>
        {items.map((item, at) => (
          <li
            key={keyOf(item, at)}
            class={dragged === at ? "dragged" : dragged !== null && over === at ? "dropping" : ""}
            // Only by its handle: text in the fields of an item stays selectable.
            draggable={held === at}
            onPointerDown={(event) => {
              const handle = (event.target as Element).closest(".handle");
              setHeld(handle?.parentElement === event.currentTarget ? at : null);
            }}
            onDragStart={(event) => {
              if (held !== at) return;
              // Firefox drags only what has data.
              event.dataTransfer?.setData("text/plain", nameOf(item));
              setDragged(at);
            }}
            onDragEnd={() => {
              setDragged(null);
              setOver(null);
            }}
            onDragOver={(event) => {
              // Of another list.
              if (dragged === null) return;
              event.preventDefault();
              setOver(at);
            }}
            onDrop={(event) => {
              if (dragged === null) return;
              event.preventDefault();
              drop(at);
            }}
          >
            <span class="handle" title={`Drag ${nameOf(item)}`}>
              <Icon name="drag" />
            </span>
            <div>{children(item, at)}</div>
            <span class="order">
              <Button
                kind="quiet"
                icon="up"
                label={`Move ${nameOf(item)} up`}
                disabled={at === 0}
                onClick={() => press(at, "up")}
              />
              <Button
                kind="quiet"
                icon="down"
                label={`Move ${nameOf(item)} down`}
                disabled={at === items.length - 1}
                onClick={() => press(at, "down")}
              />
            </span>
          </li>
        ))}
      </ol>
      <span class="unseen" role="status">
        {told}
      </span>
    </>
  );
}
