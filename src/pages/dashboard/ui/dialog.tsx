import { signal } from "@preact/signals";
import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { OperationName } from "../../../client/api.ts";
import { Failure, forgetUnanswered } from "../core/api.ts";
import { mayLeave, noteDraft } from "../core/drafts.ts";
import { messageOf } from "../core/session.ts";
import { toast } from "../core/toasts.ts";
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
  const close = (): void => {
    if (mayLeave()) onClose();
  };
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
        close();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button icon="close" kind="quiet" label="Close" onClick={close} />
      </header>
      {children}
    </dialog>
  );
}

/** Draws a dialog; the function closes it. */
type Draw = (close: () => void) => ComponentChildren;

const opened = signal<{ readonly id: number; readonly draw: Draw } | null>(null);

/** Opens a dialog on the page, in place of the one that is open. Leaving the page closes it. */
export function openDialog(draw: Draw): void {
  opened.value = { id: (opened.peek()?.id ?? 0) + 1, draw };
}

/** Place of the open dialog on a page. */
export function OpenedDialog() {
  useEffect(
    () => () => {
      opened.value = null;
    },
    [],
  );
  const dialog = opened.value;
  if (dialog === null) return null;
  const close = (): void => {
    if (opened.peek() === dialog) opened.value = null;
  };
  return <Fragment key={dialog.id}>{dialog.draw(close)}</Fragment>;
}

interface FormProps {
  /** Label of the submit button. */
  readonly submit: string;
  readonly kind?: "primary" | "danger" | "plain";
  readonly disabled?: boolean;
  /** The operation that it calls: without the permission, it cannot be submitted. */
  readonly operation?: OperationName;
  /** Whether it has changes; by default, whether the user has entered something. */
  readonly changed?: boolean;
  /** Submits the form. Its error is shown above the button. */
  readonly onSubmit: (data: FormData) => Promise<void>;
  readonly onCancel?: () => void;
  readonly children: ComponentChildren;
}

/** A form that shows its own errors. */
export function Form(props: FormProps) {
  const {
    submit,
    kind = "primary",
    disabled = false,
    operation,
    changed,
    onSubmit,
    onCancel,
    children,
  } = props;
  const draft = useRef({}).current;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(
    () => () => {
      forgetUnanswered();
      noteDraft(draft, false);
    },
    [],
  );
  useEffect(() => {
    if (changed !== undefined) noteDraft(draft, changed);
  }, [changed]);
  const send = async (form: HTMLFormElement): Promise<void> => {
    setBusy(true);
    setFailure(null);
    noteDraft(draft, false);
    try {
      await onSubmit(new FormData(form));
    } catch (error) {
      noteDraft(draft, changed !== false);
      setFailure(error instanceof Failure ? error : new Failure(0, "error", messageOf(error), null));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      onInput={() => {
        if (changed !== false) noteDraft(draft, true);
      }}
      onKeyDown={({ key, ctrlKey, metaKey, currentTarget }) => {
        if (key === "Enter" && (ctrlKey || metaKey)) currentTarget.requestSubmit();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        void send(event.currentTarget);
      }}
    >
      {children}
      {failure === null ? null : <Problem failure={failure} />}
      <footer class="actions">
        {onCancel === undefined ? null : <Button onClick={onCancel}>Cancel</Button>}
        <Button
          submit
          kind={kind === "plain" ? undefined : kind}
          disabled={busy || disabled}
          operation={operation}
        >
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
  readonly onConfirm: () => Promise<unknown>;
  /** Shown when it is done. */
  readonly done?: string;
  readonly onClose: () => void;
}

/** Asks for confirmation before an irreversible action. */
export function Confirm({ title, action, children, typed, onConfirm, done, onClose }: ConfirmProps) {
  const [text, setText] = useState("");
  const id = useId();
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        submit={action}
        kind="danger"
        changed={false}
        disabled={typed !== undefined && text !== typed}
        onCancel={onClose}
        onSubmit={async () => {
          await onConfirm();
          if (done !== undefined) toast(done);
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
