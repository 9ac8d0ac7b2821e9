import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Failure, forgetUnanswered } from "../core/api.ts";
import { messageOf } from "../core/session.ts";
import { Button } from "./button.tsx";
import { Problem } from "./feedback.tsx";

interface DialogProps {
  readonly title: string;
  /** Called on Escape and by the close button. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog that keeps the focus until it is closed. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the first paint, so that what the user types goes into the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current?.showModal();
    // The first field, else the close button.
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
  /** Label of the submit button. */
  readonly submit: string;
  readonly kind?: "primary" | "danger";
  readonly disabled?: boolean;
  readonly scope?: string;
  /** Submits the form. Its error is shown above the button. */
  readonly onSubmit: (data: FormData) => Promise<void>;
  readonly onCancel?: () => void;
  readonly children: ComponentChildren;
}

/** A form that shows its own errors. */
export function Form(props: FormProps) {
  const { submit, kind = "primary", disabled = false, scope, onSubmit, onCancel, children } = props;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(() => forgetUnanswered, []);
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
  /** Label of the confirm button: the action. */
  readonly action: string;
  readonly children: ComponentChildren;
  /** A name that must be typed to confirm an irreversible action. */
  readonly typed?: string;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** Asks for confirmation before an irreversible action. */
export function Confirm({ title, action, children, typed, onConfirm, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  const id = useId();
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        submit={action}
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
