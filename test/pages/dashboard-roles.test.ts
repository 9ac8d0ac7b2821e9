import { expect, test } from "bun:test";
import { FILLED_VIEWS, VIEWS, WITH_ROWS } from "../harness/console/views.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { type Console, useFilledConsole } from "./console.ts";
import { joinConsole } from "./people.ts";

const server = useFilledConsole();

/** Goes through all pages: what they request must be permitted. */
async function walk(visit: Console, views: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const view of views) {
    await visit.go(view);
    found.push(...visit.faults.splice(0).map((fault) => `${view}: ${fault}`));
    const row = visit.page.locator("main a.row").first();
    if (!WITH_ROWS.includes(view) || (await row.count()) === 0) continue;
    await row.click();
    await visit.settle();
    found.push(...visit.faults.splice(0).map((fault) => `${view}, one: ${fault}`));
  }
  await visit.settleRequests();
  return [...found, ...visit.faults.splice(0)];
}

test.each([
  ["viewer", { role: "viewer" }],
  ["responder", { role: "responder" }],
  ["editor", { role: "editor" }],
  ["admin", { role: "admin" }],
  ["owner", { role: "owner" }],
])(
  "no page requests what a person with the role %s may not read",
  async (name, terms) => {
    const { visit } = await joinConsole(server, { email: `${name}@example.com`, ...terms });
    expect(await walk(visit, [...VIEWS, ...FILLED_VIEWS])).toEqual([]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "no page requests what a person with a role in one project may not read",
  async () => {
    const { body } = await server.operator.get("/v1/projects");
    const [project] = body["projects"] as { id: string }[];
    const projects = [{ project_id: project?.id, role: "viewer" }];
    const { visit } = await joinConsole(server, { email: "single@example.com", projects });
    expect(await walk(visit, VIEWS)).toEqual([]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "who responds acknowledges an incident under their name, and a viewer cannot",
  async () => {
    const opened = {
      title: "Slow checkout",
      impact: "degraded",
      status: "investigating",
      message: "We look",
    };
    const { body } = await server.operator.post("/v1/pulse/incidents", opened);
    const place = `monitors/incidents/${body["id"]}`;
    const cy = await joinConsole(server, { email: "cy@example.com", name: "Cy", role: "viewer" });
    await cy.visit.go(place);
    const acknowledge = cy.visit.page.getByRole("button", { name: "Acknowledge" });
    expect(await acknowledge.isDisabled()).toBe(true);
    expect(await acknowledge.getAttribute("title")).toBe("Requires the role responder; yours is viewer");
    const dee = await joinConsole(server, { email: "dee@example.com", name: "Dee", role: "responder" });
    await dee.visit.go(place);
    expect(await dee.visit.page.getByRole("button", { name: "Edit…" }).isDisabled()).toBe(false);
    await dee.visit.page.getByRole("button", { name: "Acknowledge" }).click();
    await cy.visit.page.getByText("acknowledged by Dee").waitFor();
    await dee.visit.page.getByLabel("Message").fill("Fixed");
    await dee.visit.page.getByRole("button", { name: "Post update" }).click();
    await cy.visit.page.getByText("by Dee", { exact: true }).waitFor();
    await cy.visit.page.getByText("by operator@localhost", { exact: true }).first().waitFor();
    await cy.visit.go("audit");
    await cy.visit.page.getByRole("row").filter({ hasText: "acknowledged" }).getByText("Dee").waitFor();
    await cy.visit.expectClean();
    await dee.visit.expectClean();
  },
  TIMEOUT_MS,
);
