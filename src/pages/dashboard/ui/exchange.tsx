import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { instant, span } from "../core/format.ts";
import { indented } from "../core/indent.ts";
import { go, place, setQuery } from "../core/route.ts";
import { Button } from "./button.tsx";
import { Code } from "./code.tsx";
import { Choice } from "./field.tsx";
import { Status } from "./status.tsx";

interface InspectorProps {
  readonly title: string;
  readonly status: ComponentChildren;
  readonly actions: ComponentChildren;
  /** Route of the list. */
  readonly list: readonly string[];
  readonly children: ComponentChildren;
}

/** Details next to a list, which scroll on their own. Escape closes them. */
export function Inspector({ title, status, actions, list, children }: InspectorProps) {
  const close = (): void => go(list, Object.fromEntries(place.value.query));
  const latest = useRef(close);
  latest.current = close;
  // With the details themselves: whoever sees them can close them.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isElsewhere = event.target instanceof Element && event.target.closest("dialog, input, select");
      if (event.key === "Escape" && !isElsewhere && document.querySelector("dialog") === null)
        latest.current();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>
          {title} {status}
        </h2>
        <div class="actions">
          {actions}
          <Button icon="close" kind="quiet" label="Close details" onClick={close} />
        </div>
      </header>
      <div class="stack">{children}</div>
    </section>
  );
}

/** An attempt to send a request. */
export interface Attempt {
  readonly at: string | number;
  readonly duration_ms: number;
  readonly response_status: number | null;
  readonly error: string | null;
  /** Such as the endpoint. */
  readonly note?: string | undefined;
}

interface AttemptsProps<T extends Attempt> extends Pick<TimelineProps, "end"> {
  readonly of: readonly T[];
  /** Shown without attempts. */
  readonly empty: ComponentChildren;
  /** Details of the chosen attempt, by default of the last one. */
  readonly children: (attempt: T | undefined) => ComponentChildren;
}

/** The attempts of a webhook, of which one is shown. */
export function Attempts<T extends Attempt>({ of, empty, end, children }: AttemptsProps<T>) {
  const [chosen, setChosen] = useState<number | null>(null);
  const shown = chosen ?? of.length - 1;
  return (
    <>
      {of.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <Timeline attempts={of} shown={shown} onShow={setChosen} end={end} />
      )}
      {children(of[shown])}
    </>
  );
}

interface TimelineProps {
  readonly attempts: readonly Attempt[];
  /** Position of the attempt that is shown. */
  readonly shown: number;
  readonly onShow: (at: number) => void;
  /** What follows the last attempt. */
  readonly end: ComponentChildren;
}

/** The attempts with their time after the first one, and what follows. */
function Timeline({ attempts, shown, onShow, end }: TimelineProps) {
  const [first] = attempts;
  return (
    <ol class="timeline" aria-label="Attempts">
      {attempts.map(({ at, duration_ms, response_status, error, note }, index) => (
        <li key={index}>
          <button type="button" aria-pressed={index === shown} onClick={() => onShow(index)}>
            <Status
              state={response_status === null ? "no response" : String(response_status)}
              tone={error === null ? "good" : "bad"}
            />
            <small>
              +{span(instant(at) - instant(first?.at ?? at))} · {span(duration_ms)}
            </small>
            {note === undefined ? null : <small>{note}</small>}
          </button>
        </li>
      ))}
      {end === null ? null : <li class="quiet small">{end}</li>}
    </ol>
  );
}

/** Parts of an exchange, of which the address names one; the first one by default. */
export function Parts<T extends string>(props: {
  of: readonly (readonly [name: T, label: string])[];
  children: (shown: T) => ComponentChildren;
}) {
  const { of, children } = props;
  const named = place.value.query.get("tab");
  const shown = (of.find(([name]) => name === named) ?? of[0])?.[0] as T;
  return (
    <>
      <Choice label="Part" options={of} value={shown} onChange={(tab) => setQuery({ tab })} />
      {children(shown)}
    </>
  );
}

/** A body as text, indented if it is JSON. */
export function Body({ what, text, missing }: { what: string; text: string | null; missing: string }) {
  if (text === null) return <p class="quiet">{missing}</p>;
  return text === "" ? <p class="quiet">No body.</p> : <Code what={what} text={indented(text)} />;
}

/** The response to an attempt: its error and its body. */
export function ResponsePart(props: { error: string | null; status: number | null; body: string | null }) {
  const { error, status, body } = props;
  return (
    <>
      {error === null ? null : <p class="small">{error}</p>}
      <Body
        what="Response body"
        text={body}
        missing={status === null ? "No response." : "The response is not stored."}
      />
    </>
  );
}

/** Headers, one per line. */
export function Headers({ what, of }: { what: string; of: Readonly<Record<string, string>> | null }) {
  if (of === null) return <p class="quiet">{what} are not stored.</p>;
  const lines = Object.entries(of).map(([name, value]) => `${name}: ${value}`);
  return <Code what={what} text={lines.join("\n")} />;
}
