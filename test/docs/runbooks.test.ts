import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../harness/processes/server-process.ts";
import { readPage, type Step, shellBlocks, stepsOf } from "./page.ts";
import { type Installation, RunbookLayout } from "./runbook-layout.ts";

const TIMEOUT_MS = 180_000;
/** Users and owners are those of an installation. */
const canChangeUser = process.getuid?.() === 0 && Bun.which("setpriv") !== null;
if (!canChangeUser) console.log("skipped: runbooks (they need root and setpriv)");

const PAGES = [...new Bun.Glob("docs/runbooks/*.md").scanSync(ROOT)].sort();
const HEADINGS: Readonly<Record<string, Installation>> = {
  systemd: "systemd",
  Docker: "docker",
  Bare: "bare",
};

/** The runs: the commands of each page for each installation. */
const RUNS = PAGES.flatMap((page) =>
  Object.entries(HEADINGS).flatMap(([heading, installation]) => {
    const section =
      new RegExp(`^## ${heading}\\n(.*?)(?=^## |$(?![\\s\\S]))`, "ms").exec(readPage(page))?.[1] ?? "";
    return shellBlocks(section).length === 0 ? [] : [[page, installation, section] as const];
  }),
);

const BALANCE = "/v1/meter/acme/balance";

/** What happened before someone opens the page, and the balance afterwards. */
const BEFORE: Readonly<Record<string, (layout: RunbookLayout) => void>> = {
  "lost-master-key": (layout) => rmSync(layout.masterKey),
  certificate: ({ place }) => {
    const [key, certificate] = ["tls.key", "tls.crt"].map((name) => join(place, "etc", name));
    const request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-days", "1"];
    Bun.spawnSync(["openssl", ...request, "-keyout", `${key}`, "-out", `${certificate}`]);
  },
};
const AFTERWARDS: Readonly<Record<string, number>> = { restore: 9 };

/** A pattern for the printed lines: `…` is any text, and alone on a line any lines. */
function outputPattern(says: readonly string[]): RegExp {
  const lines = says.map((line) => {
    if (line === "…") return "(?:.*\\n)*?";
    const parts = line.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return `${parts.join(".*")}\\n`;
  });
  return new RegExp(`^${lines.join("")}$`);
}

async function failureOf(layout: RunbookLayout, { command, says }: Step): Promise<string | null> {
  const { code, out, error } = await layout.run(command);
  const printed = out === "" || out.endsWith("\n") ? out : `${out}\n`;
  const isAsDocumented =
    says.length === 0 || outputPattern(says.map((line) => layout.filledIn(line))).test(printed);
  return code === 0 && isAsDocumented ? null : [command, ...says, `→ ${code}`, out, error].join("\n");
}

describe.skipIf(!canChangeUser)("a runbook, as it is written, on a machine with that installation", () => {
  test.each(RUNS)(
    "%s, %s",
    async (page, installation, section) => {
      const name = page.replace(/^.*\/|\.md$/g, "");
      await using layout = new RunbookLayout(installation);
      await layout.start();
      await layout.client.post("/v1/meter/acme/refill", { amount: 9 });
      const backup = await layout.run(
        "ninefold backup /var/backups/ninefold/backup.db --data /var/lib/ninefold",
      );
      expect(backup.error).toBe("");
      await layout.client.post("/v1/meter/acme/refill", { amount: 5 });
      BEFORE[name]?.(layout);
      // Its page says to stop it in the words of no program.
      if (installation === "bare") await layout.stop();
      const failures: string[] = [];
      for (const step of stepsOf(section)) {
        const failure = await failureOf(layout, step);
        if (failure !== null) failures.push(failure);
      }
      expect(failures.join("\n\n")).toBe("");
      await layout.start();
      expect((await layout.client.get(BALANCE)).body).toMatchObject({ balance: AFTERWARDS[name] ?? 14 });
      expect(layout.foreignFiles()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

test("every runbook has commands for each installation, but those of clusters, which test/cluster runs", () => {
  const pages = PAGES.filter((page) => !/README|failover/.test(page));
  const missing = pages.flatMap((page) =>
    Object.values(HEADINGS).flatMap((installation) =>
      RUNS.some(([one, kind]) => one === page && kind === installation) ? [] : [`${page} ${installation}`],
    ),
  );
  // A restart of a server that runs in a terminal is no command.
  expect(missing).toEqual(["docs/runbooks/certificate.md bare"]);
});
