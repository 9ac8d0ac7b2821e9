import { signal } from "@preact/signals";
import type { OperationName } from "../../../client/api.ts";
import { chooseProject, logOut } from "../core/login.ts";
import { go } from "../core/route.ts";
import { mayCall, mayChooseProject, projects } from "../core/session.ts";
import { THEMES, theme } from "../core/theme.ts";
import { inUtc } from "../core/times.ts";
import type { IconName } from "../ui/icon.tsx";
import { visiblePages } from "./pages.ts";

/** Whether the command palette is open. */
export const paletteOpen = signal(false);
/** Whether the list of shortcuts is open. */
export const helpOpen = signal(false);

/** A command of the palette. */
export interface Command {
  readonly title: string;
  readonly icon: IconName;
  /** Its keyboard shortcut. */
  readonly keys?: string;
  /** The kind of an object that it opens. */
  readonly kind?: string;
  readonly run: () => unknown;
}

const CREATE: readonly (readonly [path: string, title: string, operation: OperationName])[] = [
  ["keys", "New key", "keys.create"],
  ["flags", "New flag", "gate.save"],
  ["monitors", "New monitor", "monitors.create"],
  ["relay", "Schedule a delivery", "relay.schedule"],
  ["catch", "New bucket", "catch.buckets.create"],
  ["projects", "New project", "projects.create"],
  ["people", "Invite a person", "people.create"],
];

/** All commands that the session can run. */
export function commands(): readonly Command[] {
  return [
    ...visiblePages().flatMap(({ path, title, letter, parts = [] }): Command[] => [
      { title: `Go to ${title}`, icon: path, keys: `g ${letter}`, run: () => go([path]) },
      ...parts
        .filter(([segment]) => segment !== "")
        .map(([segment, name]) => ({ title: `Go to ${name}`, icon: path, run: () => go([path, segment]) })),
    ]),
    ...CREATE.filter(([, , operation]) => mayCall(operation)).map(
      ([path, title]): Command => ({ title, icon: "new", run: () => go([path], { new: "1" }) }),
    ),
    ...(mayChooseProject() ? projects.value : []).map(
      ({ id, name }): Command => ({
        title: `Open project ${name}`,
        icon: "projects",
        run: () => chooseProject(id),
      }),
    ),
    ...THEMES.map(
      (choice): Command => ({
        title: choice === "system" ? "Theme: system" : `Theme: ${choice}`,
        icon: choice,
        run: () => {
          theme.value = choice;
        },
      }),
    ),
    {
      title: inUtc.value ? "Show times in my time zone" : "Show times in UTC",
      icon: "settings",
      run: () => {
        inUtc.value = !inUtc.value;
      },
    },
    {
      title: "Keyboard shortcuts",
      icon: "command",
      keys: "?",
      run: () => {
        helpOpen.value = true;
      },
    },
    { title: "API reference", icon: "link", run: () => location.assign("../docs") },
    { title: "Log out", icon: "logout", run: logOut },
  ];
}

/** The commands whose title contains every word. */
export function matching(all: readonly Command[], text: string): readonly Command[] {
  const words = text
    .toLowerCase()
    .split(" ")
    .filter((word) => word !== "");
  return all.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
}
