import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Failure } from "../core/api.ts";
import { messageOf } from "../core/session.ts";
import { Button } from "./button.tsx";
import { Problem } from "./feedback.tsx";

interface DialogProps {
  readonly title: string;
  /** Called for Escape and the cross. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog over the page, which keeps the focus until it is closed. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before it is painted: what is typed next belongs into it.
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    // Not the cross, which comes first; without a field it is the right one.
    box.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button icon="close" kind="quiet" label="Close" onClick={onClose}>
          {null}
        </Button>
      </header>
      {children}
    </dialog>
  );
}

interface FormProps {
  /** What the button says. */
  readonly submit: string;
  readonly kind?: "primary" | "danger";
  readonly disabled?: boolean;
  readonly scope?: string;
  /** Sends what was entered. What it throws is shown above the button. */
  readonly onSubmit: (data: FormData) => Promise<void>;
  readonly onCancel?: () => void;
  readonly children: ComponentChildren;
}

/** A form that shows what went wrong where it was sent. */
export function Form(props: FormProps) {
  const { submit, kind = "primary", disabled = false, scope, onSubmit, onCancel, children } = props;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const send = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      await onSubmit(new FormData(form));
    } catch (error) {
      setFailure(error instanceof Failure ? error : new Failure(0, "error", messageOf(error), null));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}
    >
      {children}
      {failure === null ? null : <Problem failure={failure} />}
      <footer class="actions">
        {onCancel === undefined ? null : <Button onClick={onCancel}>Cancel</Button>}
        <Button submit kind={kind} disabled={busy || disabled} scope={scope}>
          {submit}
        </Button>
      </footer>
    </form>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** What the button says: the deed itself. */
  readonly deed: string;
  readonly children: ComponentChildren;
  /** A name that must be typed, for what cannot be got back. */
  readonly typed?: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** Asks before something that cannot be taken back. */
export function Confirm({ title, deed, children, typed, onConfirm, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  const id = useId();
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        submit={deed}
        kind="danger"
        disabled={typed !== undefined && text !== typed}
        onCancel={onClose}
        onSubmit={async () => {
          await onConfirm();
          onClose();
        }}
      >
        <div class="prose">{children}</div>
        {typed === undefined ? null : (
          <p class="field">
            <label for={id}>
              Type <strong>{typed}</strong> to confirm
            </label>
            <input
              id={id}
              autocomplete="off"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </p>
        )}
      </Form>
    </Dialog>
  );
}
