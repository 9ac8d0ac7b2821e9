import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useResource } from "../core/resource.ts";
import { useSettled } from "../core/settled.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { type Command, commands, helpOpen, matching, paletteOpen } from "./commands.ts";
import { Finder } from "./find.ts";
import { shortcuts } from "./shortcuts.ts";

/** Characters from which objects are searched. */
const FOUND_FROM = 2;

/** The command palette, opened with Ctrl K. */
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const wanted = useSettled(text.trim());
  const [finder] = useState(() => new Finder());
  const objects = useResource(wanted.length < FOUND_FROM ? null : `find ${wanted}`, [], (signal) =>
    finder.find(wanted, signal),
  );
  const isSearching = text.trim() !== wanted || (objects.data === null && wanted.length >= FOUND_FROM);
  const found = [...matching(commands(), text), ...(isSearching ? [] : (objects.data ?? []))];
  const close = (): void => {
    paletteOpen.value = false;
  };
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    close();
    command.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((at + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(found[at]);
    }
  };
  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <Dialog title="Find anything" onClose={close}>
      <input
        class="command"
        role="combobox"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${at}`}
        aria-label="Find"
        placeholder="Find monitors, keys, flags, webhooks, pages…"
        value={text}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
      />
      <div class="commands" role="listbox" aria-label="Results" id={id} ref={list}>
        {found.map((command, index) => (
          // The input handles the keys of the list.
          // biome-ignore lint/a11y/useKeyWithClickEvents: see above
          // biome-ignore lint/a11y/useFocusableInteractive: see above
          <div
            key={`${command.kind} ${command.title} ${index}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => run(command)}
            onPointerMove={() => setAt(index)}
          >
            <Icon name={command.icon} />
            <span>{command.title}</span>
            {command.keys === undefined ? null : <kbd>{command.keys}</kbd>}
            {command.kind === undefined ? null : <span class="quiet small">{command.kind}</span>}
          </div>
        ))}
      </div>
      <p class="quiet nothing" role="status">
        {isSearching ? "Searching…" : found.length === 0 ? "Nothing found." : ""}
      </p>
    </Dialog>
  );
}

/** The list of shortcuts, opened with `?`. */
export function Help() {
  return (
    <Dialog
      title="Keyboard shortcuts"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <dl class="keys">
        {shortcuts().map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet small">Single-key shortcuts are inactive while you type. Turn them off in Settings.</p>
    </Dialog>
  );
}
