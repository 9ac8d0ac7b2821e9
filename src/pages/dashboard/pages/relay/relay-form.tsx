import { useState } from "preact/hooks";
import type { RelayBody } from "../../../../client/generated/api.ts";
import { call, requestOf } from "../../core/api.ts";
import { curlOf } from "../../core/curl.ts";
import { go } from "../../core/route.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";

/** HTTP methods of a delivery. */
export const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"] as const;
const NO_BODY = "{}";

/** The form of a new delivery. */
export function RelayForm({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [payload, setPayload] = useState('{\n  "hello": "world"\n}');
  const [body, setBody] = useState<RelayBody | null>(null);
  const problem = jsonProblem(payload);
  return (
    <Dialog title="Schedule a delivery" onClose={onClose}>
      <Form
        submit="Schedule"
        disabled={problem !== null}
        onCancel={onClose}
        onSubmit={async (data) => {
          const made = await call("relay.schedule", { body: bodyOf(data) });
          toast("Delivery scheduled");
          onDone();
          go(["relay", made.relay_id]);
        }}
      >
        <div
          class="stack"
          onInput={(event) => {
            const form = event.currentTarget.closest("form");
            if (form !== null && jsonProblem(payload) === null) setBody(bodyOf(new FormData(form)));
          }}
        >
          <Fields payload={payload} onPayload={setPayload} problem={problem} />
        </div>
        {body === null || problem !== null ? null : (
          <div class="curl">
            <pre>{curlOf(requestOf("relay.schedule", { body }))}</pre>
          </div>
        )}
      </Form>
    </Dialog>
  );
}

interface FieldsProps {
  readonly payload: string;
  readonly onPayload: (text: string) => void;
  readonly problem: string | null;
}

function Fields({ payload, onPayload, problem }: FieldsProps) {
  return (
    <>
      <TextField name="target_url" label="URL" type="url" placeholder="https://example.com/hook" required />
      <div class="two">
        <SelectField name="method" label="Method" value="POST" options={METHODS.map((one) => [one, one])} />
        <TextField
          name="delay"
          label="Delay"
          value="10s"
          pattern="\d+[smhd]"
          required
          hint="For example 0s, 90s, 5m, 2h or 30d."
        />
      </div>
      <TextField
        name="payload"
        label="Body (JSON)"
        rows={6}
        mono
        value={payload}
        onInput={onPayload}
        hint={problem ?? "Valid JSON."}
      />
      <TextField name="headers" label="Headers" rows={2} mono placeholder="X-Shop: 42" hint="One per line." />
    </>
  );
}

/** The problem with a body; null for valid JSON. */
export function jsonProblem(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? NO_BODY : text);
    return typeof value === "object" && value !== null ? null : "The body must be an object or an array.";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function bodyOf(data: FormData): RelayBody {
  const method = METHODS.find((one) => one === data.get("method")) ?? "POST";
  let payload: object = {};
  try {
    payload = JSON.parse(textOf(data, "payload") ?? NO_BODY);
  } catch {
    // Submitted only when the JSON is valid.
  }
  return {
    target_url: textOf(data, "target_url") ?? "",
    method,
    delay: textOf(data, "delay") ?? "0s",
    payload,
    headers: headersOf(textOf(data, "headers") ?? ""),
  };
}

/** Headers as entered, one per line. */
export function headersOf(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.includes(":"));
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    }),
  );
}
