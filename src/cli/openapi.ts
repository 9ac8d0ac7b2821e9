import { withDeclaredApp } from "../api/folder-api.ts";
import { openApiDocument } from "../kernel/http/document/openapi.ts";
import { printJson } from "./output.ts";

/** `ninefold openapi`: prints the document of /openapi.json. Resolves to the exit code. */
export async function openapi(): Promise<number> {
  printJson(await withDeclaredApp(({ http }) => openApiDocument(http.routes, http.parts, null)));
  return 0;
}
