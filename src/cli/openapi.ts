import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../config.ts";
import { openApiDocument } from "../kernel/http/document/openapi.ts";
import { openOfflineApp } from "./api/folder-api.ts";
import { printJson } from "./output.ts";

/** `ninefold openapi`: prints the document of /openapi.json. Resolves to the exit code. */
export async function openapi(): Promise<number> {
  // The areas declare the endpoints, and need a database.
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
