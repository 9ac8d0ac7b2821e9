import { errorText } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { sealedText } from "../../kernel/secrets/sealed-column.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { settingStore } from "./store.ts";

/** Secrets among the stored settings, by name. */
const SETTING = sealedText("server-setting");

/** Reads and writes the stored settings of the server. */
export class StoredSettings {
  private readonly store: ReturnType<typeof settingStore>;

  constructor(private readonly kernel: Pick<Kernel, "db" | "vault" | "log">) {
    this.store = settingStore(kernel.db);
  }

  /** The stored values by name. One that cannot be opened is left out: a restore without the master key empties it. */
  read(): Map<string, unknown> {
    const values = new Map<string, unknown>();
    for (const { name, value, sealed } of this.store.all()) {
      try {
        const text = sealed === null ? value : SETTING.openOrNull(this.kernel.vault, name, sealed);
        if (text !== null) values.set(name, JSON.parse(text));
      } catch (error) {
        this.kernel.log.warn("a stored setting cannot be read: set it again", {
          setting: name,
          error: errorText(error),
        });
      }
    }
    return values;
  }

  /** Stores a value; a secret is sealed. */
  set(tx: Tx, name: string, { value, secret }: { readonly value: unknown; readonly secret: boolean }): void {
    const text = JSON.stringify(value);
    const sealed = secret ? SETTING.seal(this.kernel.vault, name, text) : null;
    this.store.set(tx, { name, value: secret ? null : text, sealed });
  }

  /** Removes a value, so that the default applies. */
  remove(tx: Tx, name: string): void {
    this.store.remove(tx, name);
  }
}
