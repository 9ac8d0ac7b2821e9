import { useEffect, useRef } from "preact/hooks";
import { OverviewProvider } from "../core/overview.tsx";
import { clearKept } from "../core/resource.ts";
import { addressProject, DEFAULT_PROJECT, href, place } from "../core/route.ts";
import { ownProjects, projectId, session } from "../core/session.ts";
import { waiting } from "../core/step-up.ts";
import { closeToast, toasts } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Loading } from "../ui/feedback.tsx";
import { Icon } from "../ui/icon.tsx";
import { lazy } from "../ui/lazy.tsx";
import { helpOpen, paletteOpen } from "./commands.ts";
import { Nav } from "./nav.tsx";
import { VIEWS, visiblePages } from "./pages.ts";

const Palette = lazy(async () => (await import("./palette.tsx")).Palette);
const Help = lazy(async () => (await import("./palette.tsx")).Help);
const LogIn = lazy(async () => (await import("./login.tsx")).LogIn);
const InvitationPage = lazy(async () => (await import("./invitation.tsx")).InvitationPage);
const StepUp = lazy(async () => (await import("./step-up.tsx")).StepUp);

/** The console. */
export function App() {
  const who = session.value;
  const { page, rest } = place.value;
  const [token] = rest;
  if (page === "invitation" && token !== undefined)
    return (
      <>
        <InvitationPage key={token} token={token} />
        <Toasts />
      </>
    );
  if (who === undefined)
    return (
      <main class="log-in">
        <Loading rows={3} />
      </main>
    );
  return (
    <>
      {who === null ? <LogIn /> : <Frame key={who.user_id} />}
      {waiting.value.length === 0 ? null : <StepUp />}
      <Toasts />
    </>
  );
}

function Frame() {
  const main = useRef<HTMLElement>(null);
  const { page } = place.value;
  const before = useRef(page);
  useEffect(() => clearKept, []);
  useEffect(() => {
    if (before.current === page) return;
    before.current = page;
    main.current?.focus();
    scrollTo(0, 0);
  }, [page]);
  const found = visiblePages().find(({ path }) => path === page);
  const View = found && VIEWS[found.path];
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <OverviewProvider>
        <Nav />
        {/* The content belongs to one project. */}
        <main id="main" tabIndex={-1} ref={main} key={projectId.value ?? ""}>
          {isOutside() ? <NoProject /> : View === undefined ? <NoPage /> : <View />}
        </main>
      </OverviewProvider>
      {paletteOpen.value ? <Palette /> : null}
      {helpOpen.value ? <Help /> : null}
    </div>
  );
}

/** Whether the address names a project that the session cannot open. */
function isOutside(): boolean {
  const named = addressProject.value;
  const permitted = ownProjects();
  if (named === undefined || permitted === null || permitted.includes(named)) return false;
  // Keys of a project have it as their default; people with roles in single projects have none.
  return named !== DEFAULT_PROJECT || session.value?.person !== undefined;
}

function NoProject() {
  return (
    <Empty icon="search" title="Project not available">
      <h1 class="unseen">Project not available</h1>
      {session.value?.person === undefined
        ? "Your key belongs to another project."
        : "You have no role in this project."}{" "}
      <a href="#/overview">Go to the overview of yours</a>.
    </Empty>
  );
}

function NoPage() {
  return (
    <Empty icon="search" title="Page not found">
      <h1 class="unseen">Page not found</h1>
      This page does not exist, or you cannot view it. <a href={href(["overview"])}>Go to the overview</a>.
    </Empty>
  );
}

/** Errors stay until they are closed. */
function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isError, action }) => (
        <div class={`toast ${isError ? "bad" : ""}`} role={isError ? "alert" : undefined} key={id}>
          {isError ? <Icon name="alert" /> : null}
          <span>{text}</span>
          {action === undefined ? null : (
            <Button
              onClick={() => {
                closeToast(id);
                action[1]();
              }}
            >
              {action[0]}
            </Button>
          )}
          <Button icon="close" kind="quiet" label="Dismiss" onClick={() => closeToast(id)} />
        </div>
      ))}
    </div>
  );
}
