import { render } from "preact";
import { followChanges } from "./core/changes.ts";
import { openSession } from "./core/session.ts";
import { App } from "./shell/app.tsx";
import { listenToKeys } from "./shell/shortcuts.ts";

const root = document.getElementById("app");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
  listenToKeys();
  followChanges();
  void openSession();
}
