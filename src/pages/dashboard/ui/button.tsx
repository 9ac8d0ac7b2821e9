import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Failure, type Request } from "../core/api.ts";
import { copyText } from "../core/copy.ts";
import { curlOf } from "../core/curl.ts";
import { may, messageOf } from "../core/session.ts";
import { toast } from "../core/toasts.ts";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps {
  readonly children: ComponentChildren;
  readonly onClick?: (() => unknown) | undefined;
  readonly icon?: IconName | undefined;
  readonly kind?: "primary" | "danger" | "quiet" | undefined;
  /** What the session needs for it: without it the button is disabled and says so. */
  readonly scope?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly submit?: boolean | undefined;
  /** What it is called where its children are a picture only. */
  readonly label?: string | undefined;
  readonly pressed?: boolean | undefined;
}

/** A button. While what it does is under way it is disabled; what fails is shown as a message. */
export function Button(props: ButtonProps) {
  const { children, onClick, icon, kind, scope, disabled = false, submit = false, label, pressed } = props;
  const [busy, setBusy] = useState(false);
  const lacks = scope !== undefined && !may(scope);
  const run = async (): Promise<void> => {
    const outcome = onClick?.();
    if (!(outcome instanceof Promise)) return;
    setBusy(true);
    try {
      await outcome;
    } catch (error) {
      const request =
        error instanceof Failure && error.requestId !== null ? ` (request ${error.requestId})` : "";
      toast(messageOf(error) + request);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind ?? ""}`}
      disabled={disabled || busy || lacks}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={pressed}
      title={lacks ? `Needs the scope ${scope}` : label}
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

/** Copies a request as a line for a terminal. */
export function CurlButton({ request }: { request: Request }) {
  return (
    <Button icon="curl" onClick={() => copyText(curlOf(request), "curl line")}>
      <span class="wide">Copy as curl</span>
      <span class="narrow">curl</span>
    </Button>
  );
}
