// Pictures of every page of the console, wide and narrow, light and dark, empty and full:
//   scripts/screenshots [FOLDER] [PAGE…]    build/screenshots unless given; all pages unless named
import { resolve } from "node:path";
import { fillConsole } from "./console/filling.ts";
import { takePictures } from "./console/pictures.ts";
import { ServerProcess, SOURCE_COMMAND } from "./processes/server-process.ts";

const [folder = "build/screenshots", ...pages] = process.argv.slice(2);
const server = await ServerProcess.start({ command: SOURCE_COMMAND, args: ["--ephemeral"] });
try {
  const key = server.key ?? "";
  const options = { url: server.url, key, folder: resolve(folder), pages };
  await takePictures({ ...options, name: "empty" });
  await fillConsole(server.url, key);
  const taken = await takePictures({ ...options, name: "full" });
  console.log(`${taken} pictures of each state in ${resolve(folder)}`);
} finally {
  await server.stop();
}
