import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ninefold, TIMEOUT_MS } from "../../backup/support.ts";
import { expectError } from "../../support/errors.ts";
import { MailServer } from "../../support/mail-server.ts";
import { startTestServer, TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";

const PATH = "/v1/admin/settings";

let folder: string;
let server: TestServer;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-settings-"));
  server = await startTestServer({ manualClock: true });
});
afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly source: string;
  readonly set_in: string | null;
  readonly editable: boolean;
  readonly restart_required: boolean;
}

async function settings(): Promise<Record<string, Setting>> {
  const { status, body } = await server.operator.get(PATH);
  expect(status).toBe(200);
  return Object.fromEntries((body["settings"] as Setting[]).map((setting) => [setting.name, setting]));
}

async function set(changes: Record<string, unknown>): Promise<void> {
  const { status, text } = await server.operator.patch(PATH, changes);
  expect(status, text).toBe(200);
}

const ingestUrl = async (): Promise<string> => {
  const { body, text } = await server.operator.post("/v1/catch/buckets", {
    target_url: "https://a.example.com",
  });
  expect(body["ingest_url"], text).toBeString();
  return String(body["ingest_url"]);
};

describe("PATCH /v1/admin/settings", () => {
  test("the public URL is effective immediately, also after a restart, and removed by null", async () => {
    expect((await settings())["public_url"]).toMatchObject({
      value: null,
      source: "default",
      editable: true,
    });
    await set({ public_url: "https://n.example.com" });
    expect(await ingestUrl()).toStartWith("https://n.example.com/v1/in/");
    const document = await server.client(null).get("/openapi.json");
    expect(document.body["servers"]).toEqual([{ url: "https://n.example.com" }] as never);
    await server.restart();
    expect((await settings())["public_url"]).toMatchObject({
      value: "https://n.example.com",
      source: "stored",
    });
    expect(await ingestUrl()).toStartWith("https://n.example.com/v1/in/");
    await set({ public_url: null });
    expect(await ingestUrl()).toStartWith(server.url);
    const again = await server.client(null).get("/openapi.json");
    expect(again.body["servers"]).toEqual([{ url: "/" }] as never);
  });

  test("the brand is shown by status pages that have none of their own", async () => {
    const create = (slug: string, more: object = {}) =>
      server.operator.post("/v1/pulse/pages", { slug, title: slug, ...more });
    await create("plain");
    await create("branded", { color: "#0000ff", website_url: "https://own.example" });
    await set({ brand_color: "#aa3300", brand_website: "https://acme.example" });
    const icon = async (slug: string) => (await server.client(null).get(`/status/${slug}/icon`)).text;
    const page = async (slug: string) => (await server.client(null).get(`/status/${slug}`)).text;
    expect([await icon("plain"), await icon("branded")]).toEqual([
      expect.stringContaining("#aa3300"),
      expect.stringContaining("#0000ff"),
    ]);
    expect([await page("plain"), await page("branded")]).toEqual([
      expect.stringContaining("https://acme.example"),
      expect.stringContaining("https://own.example"),
    ]);
    await set({ brand_logo: "data:image/png;base64,AAAA", brand_color: null });
    await server.clock.advance(11_000);
    expect((await server.client(null).get("/status/plain/icon")).headers.get("content-type")).toBe(
      "image/png",
    );
    const { body } = await server.operator.get("/v1/pulse/pages");
    expect((body["pages"] as { color: unknown }[]).map(({ color }) => color)).toContain(null);
  });

  test("the mail server is effective immediately; its password is sealed and masked everywhere", async () => {
    const mail = await new MailServer().start();
    const url = mail.url.replace("://", "://ada:secret-1@");
    const testMail = () => server.operator.post(`${PATH}/test-mail`, { to: "ada@example.com" });
    expect((await testMail()).body).toMatchObject({
      delivered: false,
      error: "this server has no mail server configured",
    });
    await set({ smtp_url: mail.url, mail_from: "n@example.com" });
    expect((await testMail()).body).toMatchObject({ delivered: true, status: 250, error: null });
    expect(mail.received.map(({ from, to }) => [from, ...to])).toEqual([
      ["n@example.com", "ada@example.com"],
    ]);
    mail.refuseWith = 550;
    expect((await testMail()).body).toMatchObject({
      delivered: false,
      status: 550,
      error: expect.any(String),
    });
    await set({ smtp_url: url });
    const shown = (await server.operator.get(PATH)).text;
    expect(shown).not.toContain("secret-1");
    expect((await settings())["smtp_url"]?.value).toBe(url.replace("ada:secret-1", "********"));
    expect((await server.operator.get("/v1/admin/options")).text).not.toContain("secret-1");
    const entry = await newestOf(server.operator);
    expect(JSON.stringify(entry)).not.toContain("secret-1");
    expect(entry).toMatchObject({
      action: "admin.settings.update",
      target: { type: "server", id: "settings" },
    });
    await server.halt();
    expect(readFileSync(join(server.folder, "ninefold.db")).includes("secret-1")).toBe(false);
    await server.start();
    expect((await settings())["smtp_url"]?.source).toBe("stored");
    await mail.stop();
  });

  test("backups begin, change and end without a restart", async () => {
    const backups = join(folder, "backups");
    const plan = async () => (await server.operator.get("/v1/admin/backups")).body["plan"];
    expect(await plan()).toBeNull();
    await set({ backup_dir: backups, backup_cron: "0 * * * *" });
    expect(existsSync(backups)).toBe(true);
    expect(await plan()).toMatchObject({ folder: backups, keep: 7, next_at: "2026-03-10T13:00:00.000Z" });
    await set({ backup_cron: "30 * * * *", backup_keep: 2 });
    expect(await plan()).toMatchObject({ keep: 2, next_at: "2026-03-10T12:30:00.000Z" });
    const job = server.server.kernel.db.one<{ due_at: number }>(
      "SELECT due_at FROM jobs WHERE kind = 'backup.make'",
    );
    expect(new Date(job()?.due_at ?? 0).toISOString()).toBe("2026-03-10T12:30:00.000Z");
    await set({ backup_dir: null });
    expect([await plan(), job()]).toEqual([null, null]);
    await server.restart();
    await set({ backup_dir: backups });
    expect(await plan()).toMatchObject({ keep: 2 });
  });

  test("an archive needs a restart, and says so", async () => {
    const archive = {
      archive: "s3://bucket/n",
      archive_endpoint: "http://127.0.0.1:9",
      archive_access_key_id: "id",
    };
    expectError(await server.operator.patch(PATH, archive), "validation_error");
    await set({ ...archive, archive_secret_access_key: "secret-2" });
    expect((await settings())["archive"]).toMatchObject({ restart_required: true, value: "s3://bucket/n" });
    expect((await server.operator.get("/v1/admin/status")).body["archive"]).toBeNull();
    await server.restart();
    expect((await settings())["archive"]).toMatchObject({ restart_required: false });
    const { archive: state } = (await server.operator.get("/v1/admin/status")).body;
    expect(state).toMatchObject({ url: "s3://bucket/n" });
    await set({ archive: null });
    expect((await settings())["archive"]).toMatchObject({ restart_required: true, value: null });
  });

  test.each([
    [{ public_url: "n.example.com" }, "public_url"],
    [{ public_url: "https://n.example.com/?a" }, "public_url"],
    [{ smtp_url: "smtp://mail" }, "smtp_url"],
    [{ mail_from: "a@example.com" }, "mail_from"],
    [{ smtp_url: "https://mail", mail_from: "a@example.com" }, "smtp_url"],
    [{ smtp_url: "smtp://********@mail", mail_from: "a@example.com" }, "smtp_url"],
    [{ backup_dir: "/dev/null/x" }, "backup_dir"],
    [{ backup_dir: "backups" }, "backup_dir"],
    [{ backup_cron: "x", backup_dir: "/tmp/ninefold-never" }, "backup_cron"],
    [{ backup_keep: 0 }, "backup_keep"],
    [{ archive: "bucket" }, "archive"],
    [{ brand_color: "red" }, "brand_color"],
    [{ brand_logo: "data:text/html;base64,AAAA" }, "brand_logo"],
    [{ brand_website: "javascript:1" }, "brand_website"],
    [{ public_url: "x".repeat(2_001) }, "public_url"],
  ])("rejects %p, and stores nothing of it", async (changes, field) => {
    const { status, body } = await server.operator.patch(PATH, changes);
    expect([status, Object.keys(body["fields"] ?? {})]).toEqual([400, [field]]);
    expect(Object.values(await settings()).every(({ source }) => source === "default")).toBe(true);
  });

  test("is the operator's", async () => {
    const account = await server.account();
    expect((await account.get(PATH)).status).toBe(403);
    expect((await account.patch(PATH, { public_url: null })).status).toBe(403);
    expect((await account.post(`${PATH}/test-mail`, { to: "a@example.com" })).status).toBe(403);
    expect((await server.client(null).patch(PATH, {})).status).toBe(401);
    expect((await server.operator.post(`${PATH}/test-mail`, { to: "a" })).status).toBe(400);
    await set({});
  });
});

describe("a setting of a flag, a variable or the file", () => {
  test("wins over the stored one, names its place, and cannot be changed", async () => {
    await set({ public_url: "https://stored.example.com", backup_keep: 3 });
    await server.halt();
    const file = join(folder, "ninefold.toml");
    writeFileSync(file, "backup_dir = '/tmp/ninefold-file'\n");
    const other = new TestServer({
      manualClock: true,
      args: ["--public-url", "https://flag.example.com", "--config", file],
      environment: { NINEFOLD_SMTP_URL: "smtp://mail", NINEFOLD_MAIL_FROM: "a@example.com" },
    });
    other.folder = server.folder;
    other.key = server.key;
    server = await other.start();
    const now = await settings();
    expect(now["public_url"]).toMatchObject({
      value: "https://flag.example.com",
      source: "flag",
      set_in: "--public-url",
      editable: false,
    });
    expect(now["smtp_url"]).toMatchObject({
      source: "variable",
      set_in: "NINEFOLD_SMTP_URL",
      editable: false,
    });
    expect(now["backup_dir"]).toMatchObject({ source: "file", set_in: file, editable: false });
    expect(now["backup_keep"]).toMatchObject({ source: "stored", value: 3, editable: true });
    const { status, text } = await server.operator.patch(PATH, { public_url: "https://other.example.com" });
    expect([status, text.includes("--public-url")]).toEqual([409, true]);
  });
});

test("a stored value that cannot be used does not keep the server from starting", async () => {
  const backups = join(folder, "backups");
  await set({ backup_dir: backups });
  await server.halt();
  rmSync(backups, { recursive: true });
  writeFileSync(backups, "");
  await server.start();
  expect(server.logs.filter(({ level }) => level === "error").map(({ message }) => message)).toEqual([
    "a stored setting cannot be used: correct it in the console",
  ]);
  expect((await server.operator.get("/v1/admin/backups")).body["plan"]).toBeNull();
  await set({ backup_dir: join(folder, "others") });
  expect((await server.operator.get("/v1/admin/backups")).body["plan"]).not.toBeNull();
});

test(
  "a restore removes the stored archive, and without the master key also the mail server",
  async () => {
    await set({
      smtp_url: "smtp://mail.example.com",
      mail_from: "n@example.com",
      public_url: "https://n.example.com",
      archive: "s3://bucket/n",
      archive_access_key_id: "id",
      archive_secret_access_key: "secret-2",
    });
    await server.halt();
    const backup = join(folder, "backup.db");
    expect((await ninefold(["backup", backup, "--data", server.folder])).code).toBe(0);
    const key = readFileSync(join(server.folder, "master.key"), "utf8").trim();
    const restore = (name: string, ...args: string[]) =>
      ninefold(["restore", backup, "--data", join(folder, name), ...args], {
        ...(args.length === 0 ? { NINEFOLD_MASTER_KEY: key } : {}),
      });
    const stored = (name: string): string[] => {
      using db = new Database(join(folder, name, "ninefold.db"));
      return db
        .query<{ name: string }, []>("SELECT name FROM server_settings")
        .all()
        .map((row) => row.name);
    };
    const whole = await restore("whole");
    expect(whole.out).toContain("the archive of the settings is removed");
    expect(stored("whole")).toEqual(["mail_from", "public_url", "smtp_url"]);
    const without = await restore("without", "--without-master-key");
    expect(without.out).toContain("the stored settings of the mail server");
    expect(stored("without")).toEqual(["public_url"]);
  },
  TIMEOUT_MS,
);
