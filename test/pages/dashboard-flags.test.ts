import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

async function enter(place: string): Promise<Console> {
  const visit = await Console.enter(server);
  await visit.go(place);
  return visit;
}

async function definition(key: string): Promise<Record<string, unknown>> {
  return (await server.operator.get(`/v1/gate/${key}/definition`)).body;
}

test(
  "adds a rule with conditions and a split, and saves it as typed",
  async () => {
    const visit = await enter("flags/dark-mode");
    const { page } = visit;
    await page.getByRole("button", { name: "Add rule" }).click();
    const rule = page.getByRole("region", { name: "Rule 1" });
    await rule.getByLabel("Name of rule 1").fill("Some countries");
    await rule.getByLabel("Attribute", { exact: true }).fill("country");
    await rule.getByLabel("Values, one per line").fill("DE\nAT");
    await rule.getByLabel("ignore case").check();
    await rule.getByRole("button", { name: "Add condition" }).click();
    await rule.getByLabel("Attribute", { exact: true }).nth(1).fill("age");
    await rule.getByLabel("Comparison").nth(1).selectOption("gte");
    await rule.getByLabel("Value", { exact: true }).fill("18");
    await rule.getByLabel("not", { exact: true }).nth(1).check();
    await rule.getByLabel("Serve").selectOption("a split");
    await rule.getByLabel("Weight").first().fill("25");
    await rule.getByLabel("Weight").nth(1).fill("75");
    await rule.getByText("25 %").waitFor();
    await rule.getByLabel("Attribute to split by").fill("account.id");
    await page.getByLabel("Tags").fill("team:web, beta");
    await page.getByLabel("Serve", { exact: true }).last().selectOption("off");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect(await definition("dark-mode")).toMatchObject({
      description: "Colours for the night",
      variants: { on: true, off: false },
      off_variant: "off",
      tags: ["team:web", "beta"],
      default: { variant: "off" },
      rules: [
        {
          name: "Some countries",
          when: [
            { attribute: "country", op: "in", values: ["DE", "AT"], ignore_case: true },
            { attribute: "age", op: "gte", values: [18], not: true },
          ],
          serve: {
            split: [
              { variant: "on", weight: 25 },
              { variant: "off", weight: 75 },
            ],
            by: "account.id",
            hash: "m3",
          },
        },
      ],
    });
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "changes the type of variants, and renames a variant everywhere",
  async () => {
    await server.operator.post("/v1/gate", { flag_key: "theme", enabled: true });
    const visit = await enter("flags/theme");
    const { page } = visit;
    await page.getByLabel("Value type").selectOption("texts");
    await page.getByLabel("Variant name").first().fill("light");
    await page.getByLabel("Value of light").fill("#ffffff");
    await page.getByLabel("Variant name").nth(1).fill("dark");
    await page.getByLabel("Value of dark").fill("#000000");
    await page.getByLabel("While the flag is off").selectOption("dark");
    await page.getByLabel("Metadata (JSON)").fill('{"owner": "web"}');
    await page.getByLabel("Server only").check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect(await definition("theme")).toMatchObject({
      type: "string",
      variants: { light: "#ffffff", dark: "#000000" },
      default: { variant: "light" },
      off_variant: "dark",
      metadata: { owner: "web" },
      server_only: true,
    });
    // What the server refuses is said where it was sent, and nothing is lost.
    await page.getByLabel("Tags").fill("Not A Tag!");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await eventually(async () =>
      expect(await page.getByRole("alert").innerText()).toContain("tags[0] must be"),
    );
    await eventually(async () => expect(await page.getByLabel("Tags").inputValue()).toBe("Not A Tag!"));
    expect(visit.faults.splice(0)).toEqual([expect.stringContaining("400")]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "moves rules; a change by another client does not discard what was typed",
  async () => {
    const visit = await enter("flags/new-checkout");
    const { page } = visit;
    await page.getByRole("button", { name: "Move rule 2 up" }).click();
    await eventually(async () =>
      expect(await page.getByLabel("Name of rule 1").inputValue()).toBe("Paying customers"),
    );
    // Its switch is another matter: what is typed goes on.
    await server.operator.post("/v1/gate", { flag_key: "new-checkout", enabled: false });
    await page.locator("[role=switch][aria-label=new-checkout][aria-checked=false]").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const names = async () =>
      ((await definition("new-checkout")).rules as { name: string }[]).map(({ name }) => name);
    await eventually(async () => expect(await names()).toEqual(["Paying customers", "Our own people"]));
    expect((await definition("new-checkout")).enabled).toBe(false);
    // Untouched, the page shows what somebody else has set.
    await server.operator.post("/v1/gate", { flag_key: "new-checkout", enabled: true, tags: ["theirs"] });
    await eventually(async () => expect(await page.getByLabel("Tags").inputValue()).toBe("theirs"));
    await page.getByLabel("Tags").fill("mine");
    await server.operator.post("/v1/gate", { flag_key: "new-checkout", enabled: true, tags: ["again"] });
    await page.getByText("This flag was changed by someone else").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await eventually(async () =>
      expect(await page.getByRole("alert").innerText()).toContain("The flag now has version"),
    );
    expect((await definition("new-checkout")).tags).toEqual(["again"]);
    await page.getByRole("button", { name: "Discard my changes" }).click();
    await eventually(async () => expect(await page.getByLabel("Tags").inputValue()).toBe("again"));
    expect(visit.faults.splice(0)).toEqual([expect.stringContaining("409")]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "archives and restores a flag",
  async () => {
    const visit = await enter("flags");
    const { page } = visit;
    await eventually(async () => expect(await page.locator("main").innerText()).not.toContain("old-basket"));
    await page.getByRole("button", { name: "Archived" }).click();
    await page.getByRole("link", { name: "old-basket" }).click();
    await page.getByText("archived: excluded from evaluations").waitFor();
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByText("old-basket restored").waitFor();
    await page.getByRole("button", { name: "Archive", exact: true }).waitFor();
    expect((await definition("old-basket")).archived).toBe(false);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "previews the flag while contexts are typed and rules are edited, and again after a change",
  async () => {
    await server.operator.post("/v1/gate", {
      flag_key: "trial",
      enabled: true,
      default: { variant: "off" },
      rules: [{ when: [{ attribute: "plan", op: "in", values: ["pro"] }], serve: { variant: "on" } }],
    });
    const visit = await enter("flags/trial");
    const { page } = visit;
    const panel = page.locator(".panel", { hasText: "each preview costs" });
    await panel.getByText("DEFAULT").first().waitFor();
    await panel.getByRole("cell", { name: "user-2" }).waitFor();
    await panel.getByLabel("Contexts").fill('{"plan": "pro"}');
    await panel.getByText("TARGETING_MATCH").waitFor();
    await panel.getByText("Rule 1").waitFor();
    await page.getByLabel("Values, one per line").fill("scale");
    await panel.getByText("DEFAULT").waitFor();
    await page.getByLabel("Values, one per line").fill("pro");
    await panel.getByText("TARGETING_MATCH").waitFor();
    await eventually(async () => expect(await panel.getByRole("status").innerText()).toContain("true"));
    await panel.getByLabel("Contexts").fill('{"plan": ');
    await panel.getByText("The contexts must be a JSON object").waitFor();
    await panel.getByLabel("Contexts").fill("{}");
    await panel.getByText("DEFAULT").waitFor();
    await server.operator.post("/v1/gate", { flag_key: "trial", enabled: false, off_variant: null });
    await panel.getByText("DISABLED").waitFor();
    await eventually(async () =>
      expect(await panel.getByRole("status").innerText()).toContain("none (the caller's default)"),
    );
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "schedules unsaved changes and a switch, and cancels them",
  async () => {
    await server.operator.post("/v1/gate", { flag_key: "launch", enabled: false });
    const visit = await enter("flags/launch");
    const { page } = visit;
    const panel = page.locator(".panel", { hasText: "Scheduled changes" });
    await panel.getByText("None. A scheduled change applies").waitFor();
    await page.getByLabel("Tags").fill("team:web");
    await panel.getByRole("button", { name: "Schedule…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Schedule" }).click();
    await page.getByText("Change scheduled").waitFor();
    await panel.getByText("change tags").waitFor();
    expect((await definition("launch")).scheduled).toMatchObject([
      { set: { tags: ["team:web"] }, status: "pending" },
    ]);
    expect((await definition("launch")).tags).toEqual([]);
    await panel.getByRole("button", { name: "Schedule…" }).click();
    await dialog.getByLabel("Change").selectOption("on");
    await dialog.getByRole("button", { name: "Schedule" }).click();
    await panel.getByText("switch on").waitFor();
    await panel.getByRole("row", { name: "change tags" }).getByRole("button", { name: "Cancel" }).click();
    await page.getByText("Change cancelled").waitFor();
    await eventually(async () =>
      expect((await definition("launch")).scheduled).toMatchObject([{ set: { enabled: true } }]),
    );
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "in a project with review, proposes changes, and shows them with their difference",
  async () => {
    const { operator } = server;
    await operator.post("/v1/gate", { flag_key: "reviewed", enabled: true });
    const { projects } = (await operator.get("/v1/projects?limit=100")).body as {
      projects: { id: string; slug: string }[];
    };
    const project = projects.find(({ slug }) => slug === "default");
    await operator.patch(`/v1/projects/${project?.id}`, { review: true });
    const visit = await enter("flags/reviewed");
    try {
      const { page } = visit;
      await page.getByLabel("Tags").fill("team:web");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Proposed: somebody else must approve it").waitFor();
      const panel = page.locator(".panel", { hasText: "Proposals" });
      await panel.locator("ins", { hasText: "team:web" }).waitFor();
      await panel.getByRole("button", { name: "Approve" }).click();
      await page.getByText("Somebody else must approve it").last().waitFor();
      await eventually(async () => expect(await visit.violations()).toEqual([]));
      await panel.getByRole("button", { name: "Withdraw" }).click();
      await page.getByText("Proposal withdrawn").waitFor();
      expect((await definition("reviewed")).tags).toEqual([]);
    } finally {
      await operator.patch(`/v1/projects/${project?.id}`, { review: false });
    }
  },
  TIMEOUT_MS,
);
