import { ApiError, invalidField, StartupError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { OptionValue, StorableOptions } from "./ports.ts";
import type { ServerSetting, ServerSettings, ServerSettingsBody } from "./schema.ts";
import { StoredSettings } from "./stored-settings.ts";

/** Where a value is set, in words: what an error says that a stored value would not replace. */
const PLACES = { flag: "flag", variable: "environment variable", file: "configuration file" } as const;

/** What stands for a secret in responses. */
const MASK = "********";

export interface SettingsDeps {
  readonly kernel: Pick<Kernel, "db" | "vault" | "log">;
  readonly options: StorableOptions;
}

/** The settings that the operator stores in the database, where neither a flag, a variable nor the file sets them. */
export class SettingsService {
  private readonly stored: StoredSettings;

  constructor(private readonly deps: SettingsDeps) {
    this.stored = new StoredSettings(deps.kernel);
  }

  /** Every setting with its value and its source. */
  list(): ServerSettings {
    const { options } = this.deps;
    const values = new Map(options.current.map((option) => [option.name, option]));
    return { settings: options.storable.map((option) => this.view(option, values.get(option.name))) };
  }

  private view(
    { name, secret, effect, description }: StorableOptions["storable"][number],
    option: OptionValue | undefined,
  ): ServerSetting {
    const source = option?.source ?? "default";
    const value = option?.value ?? null;
    return {
      name,
      description,
      value: Array.isArray(value) ? value.join(",") : (value as ServerSetting["value"]),
      source,
      set_in: option?.origin ?? null,
      editable: source === "default" || source === "stored",
      secret,
      effect,
      restart_required: this.deps.options.waitsForRestart(name),
    };
  }

  /**
   * Checks the settings with these changes, null for the default, before the unit of work: it may look at folders.
   *
   * @throws ApiError `validation_error` for a value that cannot be used, `conflict` for one that is set elsewhere.
   */
  check(changes: ServerSettingsBody): void {
    const values = new Map(this.deps.options.current.map((option) => [option.name, option]));
    for (const name of Object.keys(changes)) {
      const { source = "default", origin = null } = values.get(name) ?? {};
      if (source === "default" || source === "stored") continue;
      throw new ApiError(
        "conflict",
        `${name} is set in the ${PLACES[source]} ${origin ?? ""}. Change it there, or remove it there and restart the server.`,
      );
    }
    for (const [name, value] of Object.entries(changes))
      if (typeof value === "string" && value.includes(MASK))
        throw invalidField(name, "is masked: send the secret itself, or omit the field");
    usable(changes, () => this.deps.options.assertUsable(this.merged(changes), Object.keys(changes)));
  }

  /** Stores the changes. They are applied once they are committed. */
  update(tx: Tx, changes: ServerSettingsBody): void {
    const before = this.list();
    const stored = this.merged(changes);
    for (const [name, value] of Object.entries(changes)) {
      const option = this.deps.options.storable.find((storable) => storable.name === name);
      if (value === undefined || option === undefined) continue;
      if (value === null) this.stored.remove(tx, name);
      else this.stored.set(tx, name, { value, secret: option.secret });
    }
    const names = Object.keys(changes);
    usable(changes, () => this.deps.options.apply(tx, stored));
    const after = this.list();
    const fields = ({ settings }: ServerSettings) =>
      Object.fromEntries(
        settings.filter(({ name }) => names.includes(name)).map(({ name, value }) => [name, value]),
      );
    tx.audit(
      names.length === 0
        ? null
        : {
            summary: `Server settings changed: ${names.join(", ")}`,
            target: { type: "server", id: "settings" },
            before: fields(before),
            after: fields(after),
          },
    );
  }

  private merged(changes: ServerSettingsBody): Map<string, unknown> {
    const stored = this.stored.read();
    for (const [name, value] of Object.entries(changes)) {
      if (value === null) stored.delete(name);
      else if (value !== undefined) stored.set(name, value);
    }
    return stored;
  }
}

/** Runs `work`, whose errors about options become those of fields. */
function usable(changes: ServerSettingsBody, work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof StartupError)) throw error;
    throw asFieldError(error.message, Object.keys(changes));
  }
}

/** An error of an option as one of the field that it names, or of the first that was sent. */
function asFieldError(message: string, names: readonly string[]): ApiError {
  const named = names.find((name) => message.startsWith(`${name} `) || message.startsWith(`${name}:`));
  const field = named ?? names[0] ?? "settings";
  const rest = named === undefined ? `: ${message}` : message.slice(named.length).replace(/^: /, "");
  return invalidField(field, rest.trim());
}
