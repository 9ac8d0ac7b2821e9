import { BASE_URL } from "../../core/api.ts";
import { toast } from "../../core/toasts.ts";
import { Dialog, Form } from "../../ui/dialog.tsx";
import { SelectField, TextField, textOf } from "../../ui/field.tsx";
import { headersIn } from "../../ui/kinds.ts";

const METHODS = ["POST", "PUT", "PATCH", "DELETE", "GET"].map((method) => [method, method] as const);
const BODY = JSON.stringify({ type: "test", hello: "world" }, null, 2);

/** Sends a request to a bucket's public URL as a sender does, without the session. */
export function TestEvent({ id, onSent, onClose }: { id: string; onSent: () => void; onClose: () => void }) {
  const submit = async (data: FormData): Promise<void> => {
    const method = textOf(data, "method") ?? "POST";
    const below = textOf(data, "below") ?? "";
    const path = below === "" || below.startsWith("/") || below.startsWith("?") ? below : `/${below}`;
    const body = data.get("body");
    const response = await fetch(`${BASE_URL}/v1/in/${encodeURIComponent(id)}${path}`, {
      method,
      credentials: "omit",
      headers: headersIn(textOf(data, "headers") ?? ""),
      ...(method === "GET" ? {} : { body: typeof body === "string" ? body : "" }),
    });
    toast(`The bucket returned ${response.status}: ${meaningOf(await response.text())}`);
    onSent();
    onClose();
  };
  return (
    <Dialog title="Send test event" onClose={onClose}>
      <Form submit="Send" onCancel={onClose} onSubmit={submit}>
        <div class="two">
          <SelectField name="method" label="Method" value="POST" options={METHODS} />
          <TextField name="below" label="Path after the bucket's URL" placeholder="/orders?shop=1" mono />
        </div>
        <TextField
          name="headers"
          label="Headers"
          rows={3}
          mono
          value="Content-Type: application/json"
          hint="One per line."
        />
        <TextField name="body" label="Body" rows={8} mono value={BODY} />
      </Form>
    </Dialog>
  );
}

/** The event's status, unless the bucket sends a custom response. */
function meaningOf(text: string): string {
  try {
    const { status, verification } = JSON.parse(text) as { status?: string; verification?: string };
    if (status !== undefined) return `${status}, signature ${verification ?? "none"}`;
  } catch {
    // A custom response of the bucket.
  }
  return text.slice(0, 100);
}
