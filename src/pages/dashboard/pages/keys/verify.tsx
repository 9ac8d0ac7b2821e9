import { useState } from "preact/hooks";
import { messageOf } from "../../core/session.ts";
import { Button } from "../../ui/button.tsx";
import { Panel } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";

/** Result of a verification, in words. */
interface Outcome {
  readonly valid: boolean;
  readonly title: string;
  readonly lines: readonly string[];
}

const LINES_MAX = 50;

/** Verifies receipts in the browser with the code of `ninefold verify`, without a request. */
export function VerifyPanel() {
  const [text, setText] = useState("");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [isOver, setOver] = useState(false);
  const check = async (text: string): Promise<void> => {
    setOutcome(await verify(text));
  };
  const take = async (file: File | undefined): Promise<void> => {
    setOver(false);
    if (file === undefined) return;
    const read = await file.text();
    setText(read);
    await check(read);
  };
  return (
    <Panel title="Verify receipts">
      <section
        aria-label="Receipts to verify"
        class={`drop stack ${isOver ? "over" : ""}`}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          void take(event.dataTransfer?.files[0]);
        }}
      >
        <p class="quiet">
          Paste one receipt, several as JSON lines in ascending order, or drop a file. Nothing leaves this
          browser.
        </p>
        <p class="field">
          <label for="receipts">Receipts</label>
          <textarea
            id="receipts"
            class="mono"
            rows={8}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </p>
        <div class="actions">
          <Button kind="primary" icon="check" disabled={text.trim() === ""} onClick={() => check(text)}>
            Verify
          </Button>
          <input
            type="file"
            aria-label="Receipts file"
            accept=".json,.jsonl"
            onChange={(event) => void take(event.currentTarget.files?.[0])}
          />
        </div>
      </section>
      {outcome === null ? null : (
        <div role="status" class="prose outcome">
          <Status state={outcome.title} tone={outcome.valid ? "good" : "bad"} />
          <ul class="log">
            {outcome.lines.slice(0, LINES_MAX).map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </div>
      )}
    </Panel>
  );
}

/** The verifier is loaded on first use. */
async function verify(text: string): Promise<Outcome> {
  try {
    const { verifyChain, verifyReceipt } = await import("../../../../verify/index.ts");
    const receipts = receiptsIn(text);
    const [only] = receipts;
    if (receipts.length === 1 && only !== undefined) {
      const { valid, errors = [] } = verifyReceipt(only);
      return { valid, title: valid ? "The receipt is valid" : "The receipt is not valid", lines: errors };
    }
    const { valid, count, first, last, publicKey, found } = verifyChain(receipts);
    const lines = found.map(({ sequence, problems }) => `${sequence ?? "?"}: ${problems.join(", ")}`);
    const title = valid
      ? `${count} receipts, ${first} to ${last}, form a complete chain`
      : "Not a complete chain";
    return { valid, title, lines: valid ? [`Signed by ${publicKey}`] : lines };
  } catch (error) {
    return { valid: false, title: "The receipts could not be read", lines: [messageOf(error)] };
  }
}

/** One receipt over several lines, or one per line. */
function receiptsIn(text: string): string[] {
  try {
    JSON.parse(text);
    return [text];
  } catch {
    return text.split("\n").filter((line) => line.trim() !== "");
  }
}
