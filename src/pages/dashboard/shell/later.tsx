import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "../ui/feedback.tsx";

/** A page that is loaded when it is first looked at: few do, and everybody would wait for it. */
export function later(load: () => Promise<ComponentType>): ComponentType {
  let loaded: ComponentType | null = null;
  return () => {
    const [, redraw] = useState(false);
    useEffect(() => {
      if (loaded !== null) return;
      void load().then((page) => {
        loaded = page;
        redraw(true);
      });
    }, []);
    const Page = loaded;
    return Page === null ? <Loading /> : <Page />;
  };
}
