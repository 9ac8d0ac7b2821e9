import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config.ts";
import { openApiDocument } from "../kernel/http/document/openapi.ts";
import { openOfflineApp } from "./folder-api.ts";
import { printJson } from "./output.ts";

/** `ninefold openapi`: the document that a running server has at /openapi.json. Resolves to the exit code. */
export async function openapi(): Promise<number> {
  // The endpoints are declared by the areas, and those want a database to stand on.
  const folder = mkdtempSync(join(tmpdir(), "ninefold-openapi-"));
  try {
    const { app, close } = openOfflineApp(folder, loadConfig(["--ephemeral"], {}));
    const document = await openApiDocument(app.http.routes, app.http.parts);
    await close();
    printJson(document);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return 0;
}
