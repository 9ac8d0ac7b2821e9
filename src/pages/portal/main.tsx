import { render } from "preact";
import { App } from "./app.tsx";
import { followAddress, takeToken } from "./session.ts";

const root = document.getElementById("app");
if (root !== null) {
  takeToken();
  followAddress();
  root.replaceChildren();
  render(<App />, root);
}
