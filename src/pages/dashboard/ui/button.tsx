import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Request } from "../core/api.ts";
import { copyText } from "../core/copy.ts";
import { curlOf } from "../core/curl.ts";
import { may, showError } from "../core/session.ts";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps {
  readonly children?: ComponentChildren;
  readonly onClick?: (() => unknown) | undefined;
  readonly icon?: IconName | undefined;
  readonly kind?: "primary" | "danger" | "quiet" | undefined;
  /** The scope that the session needs: without it the button is disabled. */
  readonly scope?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly submit?: boolean | undefined;
  /** Accessible name of a button that shows only an icon. */
  readonly label?: string | undefined;
  readonly pressed?: boolean | undefined;
}

/** A button. It is disabled while its action runs; an error is shown as a toast. */
export function Button(props: ButtonProps) {
  const { children, onClick, icon, kind, scope, disabled = false, submit = false, label, pressed } = props;
  const [busy, setBusy] = useState(false);
  const lacksScope = scope !== undefined && !may(scope);
  const run = async (): Promise<void> => {
    const outcome = onClick?.();
    if (!(outcome instanceof Promise)) return;
    setBusy(true);
    try {
      await outcome;
    } catch (error) {
      showError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind ?? ""}`}
      disabled={disabled || busy || lacksScope}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={pressed}
      title={lacksScope ? `Requires the scope ${scope}` : label}
      onClick={submit ? undefined : () => void run()}
    >
      {icon === undefined ? null : <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Copies a text. */
export function CopyButton({
  text,
  what,
  children,
}: {
  text: string;
  what: string;
  children?: ComponentChildren;
}) {
  return (
    <Button
      icon="copy"
      kind="quiet"
      label={`Copy ${what.toLowerCase()}`}
      onClick={() => copyText(text, what)}
    >
      {children}
    </Button>
  );
}

/** Copies a request as a curl command. */
export function CurlButton({ request }: { request: Request }) {
  return (
    <Button icon="curl" onClick={() => copyText(curlOf(request), "curl command")}>
      <span class="wide">Copy as curl</span>
      <span class="narrow">curl</span>
    </Button>
  );
}
