import { useEffect, useRef } from "preact/hooks";
import { clearKept } from "../core/resource.ts";
import { place } from "../core/route.ts";
import { projectId, session } from "../core/session.ts";
import { closeToast, toasts } from "../core/toasts.ts";
import { Button } from "../ui/button.tsx";
import { Empty, Loading } from "../ui/feedback.tsx";
import { helpOpen, paletteOpen } from "./commands.ts";
import { LogIn } from "./login.tsx";
import { Nav } from "./nav.tsx";
import { visiblePages } from "./pages.ts";
import { Help, Palette } from "./palette.tsx";

/** The console. */
export function App() {
  const who = session.value;
  if (who === undefined)
    return (
      <main class="log-in">
        <Loading rows={3} />
      </main>
    );
  return (
    <>
      {who === null ? <LogIn /> : <Frame key={who.user_id} />}
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
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <Nav />
      {/* The content belongs to one project. */}
      <main id="main" tabIndex={-1} ref={main} key={projectId.value ?? ""}>
        {found === undefined ? <NoPage /> : <found.View />}
      </main>
      {paletteOpen.value ? <Palette /> : null}
      {helpOpen.value ? <Help /> : null}
    </div>
  );
}

function NoPage() {
  return (
    <Empty icon="search" title="Page not found">
      <h1 class="unseen">Page not found</h1>
      This page does not exist, or your key cannot view it. <a href="#/overview">Go to the overview</a>.
    </Empty>
  );
}

function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, undo }) => (
        <div class="toast" key={id}>
          <span>{text}</span>
          {undo === undefined ? null : (
            <Button
              icon="undo"
              onClick={() => {
                closeToast(id);
                undo();
              }}
            >
              Undo
            </Button>
          )}
          <Button icon="close" kind="quiet" label="Dismiss" onClick={() => closeToast(id)}>
            {null}
          </Button>
        </div>
      ))}
    </div>
  );
}
