// Takes pictures of every page of the console, wide and narrow, light and dark, empty and full:
//   scripts/harness screenshots [FOLDER] [PAGE…]   default: all pages, into build/screenshots
//   scripts/harness screenshots --readme           the three of README, into docs/pictures
import { resolve } from "node:path";
import { fillConsole } from "./console/filling.ts";
import { takePictures } from "./console/pictures.ts";
import { takeReadmePictures } from "./console/readme.ts";
import { ServerProcess, SOURCE_COMMAND } from "./processes/server-process.ts";

const [folder = "build/screenshots", ...pages] = process.argv.slice(2);
const isReadme = folder === "--readme";
const args = ["--ephemeral", ...(isReadme ? ["--port", "9909"] : [])];
const server = await ServerProcess.start({ command: SOURCE_COMMAND, args });
try {
  const key = server.key ?? "";
  if (isReadme) {
    await takeReadmePictures(server.url, key, resolve("docs/pictures"));
  } else {
    const options = { url: server.url, key, folder: resolve(folder), pages };
    await takePictures({ ...options, name: "empty" });
    await fillConsole(server.url, key);
    const taken = await takePictures({ ...options, name: "full" });
    console.log(`${taken} pictures of each state in ${resolve(folder)}`);
  }
} finally {
  await server.stop();
}
