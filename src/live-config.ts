import type { StorableOptions } from "./areas/server/ports.ts";
import { hasStoredArchive } from "./areas/server/store.ts";
import { StoredSettings } from "./areas/server/stored-settings.ts";
import { prepareBackupFolder, ScheduledBackups } from "./backup/scheduled.ts";
import { type Config, STORABLE, withStored } from "./config.ts";
import { StartupError } from "./kernel/errors.ts";
import type { Kernel } from "./kernel/kernel.ts";
import { createSmtpMailer, type Mailer } from "./kernel/mail/smtp.ts";
import type { Database } from "./kernel/storage/database.ts";
import type { Tx } from "./kernel/storage/tx.ts";

/** Whether a server makes entries for an archive, also one that is stored in its database. */
export function needsEntries(config: Config): (db: Database) => boolean {
  return (db) => config.archive !== null || hasStoredArchive(db);
}

/** The configuration of a running server: that of its start, with what its operator stores in the database over it. */
export class LiveConfig implements StorableOptions {
  readonly storable = STORABLE.map(({ name, secret, storable, description }) => ({
    name,
    secret: secret === true,
    effect: storable ?? "restart",
    description,
  }));
  /** The configuration of the start, with the settings that were stored then. */
  readonly started: Config;
  /** Called after a change, such as another mail server. */
  onChange: () => void = () => undefined;
  private config: Config;
  private currentMailer: Mailer | null;
  private schedule: ScheduledBackups | null = null;

  constructor(
    private readonly kernel: Kernel,
    private readonly startConfig: Config,
  ) {
    this.started = this.withStoredAtStart();
    this.config = this.started;
    this.currentMailer = mailerOf(this.config);
    this.schedule = this.scheduleAtStart();
  }

  /** Every option with its value and source now. */
  get current(): Config["settings"] {
    return this.config.settings;
  }

  /** Where browsers and senders reach the server; null if it is not configured. */
  readonly publicUrl = (): string | null => this.config.publicUrl;

  /** What status pages show that have nothing of their own. */
  readonly brand = (): Config["brand"] => this.config.brand;

  /** Sends e-mails; null without a mail server. */
  readonly mailer = (): Mailer | null => this.currentMailer;

  /** Null for a server without a backup folder. */
  readonly backups = (): ScheduledBackups | null => (this.config.backups === null ? null : this.schedule);

  /** Ends a running backup. */
  async stop(): Promise<void> {
    await this.schedule?.stop();
  }

  assertUsable(stored: ReadonlyMap<string, unknown>, changed: readonly string[]): void {
    const { backups } = withStored(this.startConfig, stored);
    if (backups !== null && changed.includes("backup_dir")) prepareBackupFolder(backups.folder);
  }

  apply(tx: Tx, stored: ReadonlyMap<string, unknown>): void {
    const before = { config: this.config, mailer: this.currentMailer };
    const config = withStored(this.startConfig, stored);
    if (JSON.stringify(config.backups) !== JSON.stringify(before.config.backups)) this.replan(tx, config);
    this.use(config, mailerOf(config));
    tx.onRollback(() => this.use(before.config, before.mailer));
    tx.afterCommit(() => this.onChange());
  }

  waitsForRestart(name: string): boolean {
    const option = STORABLE.find((storable) => storable.name === name);
    if (option?.storable !== "restart") return false;
    return this.config.values[option.name] !== this.started.values[option.name];
  }

  private use(config: Config, mailer: Mailer | null): void {
    this.config = config;
    this.currentMailer = mailer;
  }

  private replan(tx: Tx, { backups }: Config): void {
    if (backups !== null) this.schedule ??= new ScheduledBackups(this.kernel, backups);
    this.schedule?.change(tx, backups);
  }

  /** What is stored never keeps a server from starting: its operator corrects it in the console. */
  private withStoredAtStart(): Config {
    try {
      return withStored(this.startConfig, new StoredSettings(this.kernel).read());
    } catch (error) {
      this.report(error);
      return this.startConfig;
    }
  }

  private scheduleAtStart(): ScheduledBackups | null {
    const { backups } = this.config;
    if (backups === null) return null;
    try {
      return new ScheduledBackups(this.kernel, backups);
    } catch (error) {
      if (this.startConfig.backups !== null) throw error;
      this.report(error);
      this.config = { ...this.config, backups: null };
      return null;
    }
  }

  private report(error: unknown): void {
    if (!(error instanceof StartupError)) throw error;
    this.kernel.log.error("a stored setting cannot be used: correct it in the console", {
      error: error.message,
    });
  }
}

function mailerOf({ smtp, publicUrl }: Config): Mailer | null {
  return smtp === null ? null : createSmtpMailer({ ...smtp, publicUrl });
}
