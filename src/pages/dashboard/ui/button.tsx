import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { OperationName } from "../../../client/api.ts";
import type { Request } from "../core/api.ts";
import { copyText } from "../core/copy.ts";
import { curlOf } from "../core/curl.ts";
import { showError, whyNot } from "../core/session.ts";
import { Icon, type IconName } from "./icon.tsx";

interface ButtonProps {
  readonly children?: ComponentChildren;
  readonly onClick?: (() => unknown) | undefined;
  readonly icon?: IconName | undefined;
  readonly kind?: "primary" | "danger" | "quiet" | undefined;
  /** The operation that it calls: without the permission, the button is disabled and says why. */
  readonly operation?: OperationName | undefined;
  readonly disabled?: boolean | undefined;
  /** Why it is disabled, beyond the permission. */
  readonly reason?: string | undefined;
  readonly submit?: boolean | undefined;
  /** Accessible name of a button that shows only an icon. */
  readonly label?: string | undefined;
  readonly pressed?: boolean | undefined;
}

/** A button. It is disabled while its action runs; an error is shown as a toast. */
export function Button(props: ButtonProps) {
  const {
    children,
    onClick,
    icon,
    kind,
    operation,
    disabled = false,
    submit = false,
    label,
    pressed,
  } = props;
  const [busy, setBusy] = useState(false);
  const reason = (operation === undefined ? null : whyNot(operation)) ?? props.reason ?? null;
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
      disabled={disabled || busy || reason !== null}
      aria-busy={busy}
      aria-label={label}
      aria-pressed={pressed}
      title={reason ?? label}
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
