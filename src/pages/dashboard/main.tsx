import { render } from "preact";
import { followChanges } from "./core/changes.ts";
import { App } from "./shell/app.tsx";
import { open } from "./shell/opening.tsx";
import { listenToKeys } from "./shell/shortcuts.ts";

const root = document.getElementById("app");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
  listenToKeys();
  followChanges();
  void open();
}
