import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";
import type { Overview } from "../../../client/generated/api.ts";
import { setServerTime } from "./now.ts";
import { type Resource, useCall } from "./resource.ts";
import { place } from "./route.ts";

const AREAS = ["meter", "projects", "keys", "gate", "latch", "pulse", "relay", "catch", "witness", "audit"];

const Context = createContext<Resource<Overview>>({
  data: null,
  failure: null,
  fresh: false,
  reload: () => undefined,
});

/** Reads the overview once for the sidebar and the page, and again when something changes. */
export function OverviewProvider({ children }: { children: ComponentChildren }) {
  // The page alone shows the details.
  const query = place.value.page === "overview" ? { details: true } : {};
  const overview = useCall("overview.read", { query }, AREAS);
  const { data, fresh } = overview;
  useEffect(() => {
    if (data !== null && fresh) setServerTime(data.at);
  }, [data]);
  return <Context.Provider value={overview}>{children}</Context.Provider>;
}

/** The overview of all services. */
export function useOverview(): Resource<Overview> {
  return useContext(Context);
}
