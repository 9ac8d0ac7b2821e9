// Builds and installs the package into the empty folder that is named: the test command does so once for all tests.
import { installInto } from "./installed.ts";

await installInto(Bun.argv[2] ?? "");
