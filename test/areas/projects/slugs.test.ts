import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { availableSlug, SLUG_LENGTH_MAX, slugOf } from "../../../src/areas/projects/domain.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { makeProject, projectsOf } from "./support.ts";

const LONG = "a".repeat(SLUG_LENGTH_MAX);
const SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/;

describe("the slug of a name", () => {
  test.each([
    ["Shop", "shop"],
    ["My  Shop!", "my-shop"],
    ["--Shop--", "shop"],
    ["Crème Brûlée", "creme-brulee"],
    ["ÅNGSTRÖM", "angstrom"],
    ["ﬁle № 5", "file-no-5"],
    ["İstanbul", "istanbul"],
    ["a_b.c/d", "a-b-c-d"],
    ["2030", "2030"],
    ["日本", "project"],
    ["!!!", "project"],
    ["📦", "project"],
    ["shop-2", "shop-2"],
    [LONG, LONG],
    [`${LONG}b`, LONG],
    [`${LONG.slice(1)} b`, LONG.slice(1)],
  ])("%s → %s", (name, slug) => expect(slugOf(name)).toBe(slug));

  test(`is always URL-safe and has 1 to ${SLUG_LENGTH_MAX} characters`, () => {
    const names = fc.oneof(
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 100 }),
      fc.string({ maxLength: 100 }),
    );
    fc.assert(
      fc.property(names, (name) => {
        const slug = slugOf(name);
        expect(slug).toMatch(SLUG);
        expect(slug.length).toBeLessThanOrEqual(SLUG_LENGTH_MAX);
        expect(slugOf(slug)).toBe(slug);
      }),
    );
  });
});

describe("an available slug", () => {
  test("has the lowest available number, from 2", () => {
    const taken = new Set<string>();
    for (const expected of ["shop", "shop-2", "shop-3", "shop-4"]) {
      const slug = availableSlug("Shop", (one) => taken.has(one));
      expect(slug).toBe(expected);
      taken.add(slug);
    }
    taken.delete("shop-3");
    expect(availableSlug("Shop", (one) => taken.has(one))).toBe("shop-3");
  });

  test(`has at most ${SLUG_LENGTH_MAX} characters, including its number`, () => {
    const taken = new Set([LONG]);
    const second = availableSlug(LONG, (one) => taken.has(one));
    expect(second).toBe(`${LONG.slice(2)}-2`);
    for (let number = 2; number < 10; number += 1) taken.add(`${LONG.slice(2)}-${number}`);
    expect(availableSlug(LONG, (one) => taken.has(one))).toBe(`${LONG.slice(3)}-10`);
    // Where the cut would leave a dash, it goes too.
    const dashed = `${"a".repeat(SLUG_LENGTH_MAX - 3)}-bb`;
    expect(availableSlug(dashed, (one) => one === dashed)).toBe(`${"a".repeat(SLUG_LENGTH_MAX - 3)}-2`);
  });

  test("is available and found with few lookups, also among many", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.array(fc.nat(200), { maxLength: 50 }),
        (run, gaps) => {
          const free = new Set(gaps.map((gap) => `shop-${gap}`));
          let looks = 0;
          const isTaken = (slug: string): boolean => {
            looks += 1;
            const number = slug === "shop" ? 1 : Number(slug.slice("shop-".length));
            return number <= run && !free.has(slug);
          };
          const slug = availableSlug("Shop", isTaken);
          expect(looks).toBeLessThan(100);
          expect(isTaken(slug)).toBe(false);
          expect(slug).toMatch(/^shop(-([2-9]|[1-9]\d+))?$/);
        },
      ),
    );
  });
});

describe("over the API", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true });
  });
  afterAll(() => server.stop());

  test("equal names get numbers, also in concurrent requests; every account has its own slugs", async () => {
    const account = await server.account();
    const ids = await Promise.all(Array.from({ length: 12 }, () => makeProject(account, "Größe")));
    expect(new Set(ids).size).toBe(12);
    const slugs = (await projectsOf(account)).map(({ slug }) => slug).sort();
    const numbered = Array.from({ length: 11 }, (_, index) => `grosse-${index + 2}`);
    // ß is a letter of its own, which has no accent to strip.
    const expected = numbered.map((slug) => slug.replace("grosse", "gro-e"));
    expect(slugs).toEqual(["default", "gro-e", ...expected].sort());
    const other = await server.account();
    await makeProject(other, "Größe");
    expect((await projectsOf(other))[0]?.slug).toBe("gro-e");
  });

  test("the slug of a deleted project is available again", async () => {
    const account = await server.account();
    const first = await makeProject(account, "Shop");
    await makeProject(account, "Shop");
    expect((await account.delete(`/v1/projects/${first}`)).status).toBe(200);
    await makeProject(account, "Shop");
    expect((await projectsOf(account)).map(({ slug }) => slug)).toEqual(["shop", "shop-2", "default"]);
  });
});
