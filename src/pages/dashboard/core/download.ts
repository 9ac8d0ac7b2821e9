import { send, sessionHeaders } from "./api.ts";

/** Downloads a file of the server with the session; a plain link would send no credentials. @throws Failure */
export async function download(path: string, name: string): Promise<void> {
  const response = await send(path, { headers: sessionHeaders() });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
