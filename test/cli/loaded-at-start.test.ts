import { expect, test } from "bun:test";

/** Packages that a server without the features that use them does not load. */
const ON_USE = ["yaml", "nodemailer", "file-type"];
/** Files that only servers with an option load. */
const WITH_OPTIONS = ["/src/archive/archive.ts", "/src/cluster/cluster.ts", "/src/areas/mcp/index.ts"];

test("a start loads no code that only some servers or requests need", async () => {
  const program = `await import("./src/cli/serve.ts"); console.log(JSON.stringify(Object.keys(require.cache)))`;
  const text = await Bun.$`${process.execPath} --no-env-file --no-install -e ${program}`
    .cwd(`${import.meta.dir}/../..`)
    .text();
  const modules: string[] = JSON.parse(text);
  expect(modules.some((path) => path.includes("/node_modules/croner/"))).toBeTrue();
  for (const name of ON_USE)
    expect(modules.filter((path) => path.includes(`/node_modules/${name}/`))).toEqual([]);
  expect(modules.filter((path) => WITH_OPTIONS.some((file) => path.endsWith(file)))).toEqual([]);
});
