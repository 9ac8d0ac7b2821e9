import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "./api.ts";
import type { Action } from "./load.ts";

/** An error, announced to screen readers. */
export function Failure({ problem }: { problem: Problem | null }) {
  if (problem === null) return null;
  const fields = Object.entries(problem.fields);
  return (
    <div class="failure" role="alert">
      {fields.length === 0
        ? problem.message
        : fields.map(([name, messages]) => (
            <p key={name}>
              <strong>{name.replaceAll("_", " ")}</strong> {messages.join(", ")}
            </p>
          ))}
    </div>
  );
}

/** A button that runs an action. */
export function ActionButton(props: {
  action: Action;
  onClick: () => void;
  kind?: "main" | "bad";
  children: ComponentChildren;
}) {
  const { action, onClick, kind = "", children } = props;
  return (
    <button type="button" class={kind} disabled={action.isRunning} onClick={onClick}>
      {children}
    </button>
  );
}

/** A button that asks to be pressed again. Browsers show no dialogs of embedded pages. */
export function ConfirmedButton(props: {
  action: Action;
  onClick: () => void;
  ask: string;
  children: ComponentChildren;
}) {
  const { action, onClick, ask, children } = props;
  const [isAsking, setAsking] = useState(false);
  useEffect(() => {
    if (!isAsking) return undefined;
    const timer = setTimeout(() => setAsking(false), 5_000);
    return () => clearTimeout(timer);
  }, [isAsking]);
  const press = (): void => {
    setAsking(!isAsking);
    if (isAsking) onClick();
  };
  return (
    <ActionButton action={action} onClick={press} kind="bad">
      {isAsking ? ask : children}
    </ActionButton>
  );
}

/** A text that can be copied. */
export function Copied({ text, label }: { text: string; label: string }) {
  return (
    <span class="copied">
      <code>{text}</code>
      <CopyButton text={text} label={label} />
    </span>
  );
}

/** A button that copies a text. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, say] = useState("");
  const copy = async (): Promise<void> => {
    say((await copyText(text)) ? "Copied" : "Select and copy it manually");
  };
  return (
    <span class="copied">
      <button type="button" aria-label={`Copy ${label}`} onClick={() => void copy()}>
        Copy
      </button>
      <span role="status" class="quiet">
        {said}
      </span>
    </span>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Embedded pages may not use the clipboard, and there is none over plain HTTP: copy a selection.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A state by color and word. */
export function Badge({
  tone,
  children,
}: {
  tone: "good" | "bad" | "warn" | "plain";
  children: ComponentChildren;
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const TIMES = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

/** A time in the reader's time zone, which it names. */
export function Time({ at }: { at: number }) {
  return <time dateTime={new Date(at).toISOString()}>{TIMES.format(at)}</time>;
}

/** What a part shows while it loads, or when it cannot be loaded. */
export function Waiting({ problem }: { problem: Problem | null }) {
  return problem === null ? <p class="quiet">Loading…</p> : <Failure problem={problem} />;
}
