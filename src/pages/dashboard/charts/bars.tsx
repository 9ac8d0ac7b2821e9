import type { Bar } from "./bar.ts";

const WIDTH = 4;
const GAP = 2;
const HEIGHT = 24;
/** Smallest visible height. */
const LEAST = 0.08;

/**
 * A row of bars. The height also shows the state, so that colour is not the only sign. `label` describes the chart
 * in words.
 */
export function Bars({ bars, places, label }: { bars: readonly Bar[]; places: number; label: string }) {
  const visible = bars.slice(-places);
  const offset = places - visible.length;
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${places * (WIDTH + GAP) - GAP} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {Array.from({ length: places }, (_, at) => {
        const bar = visible[at - offset];
        const height = bar === undefined ? HEIGHT : heightOf(bar.height);
        const bad = heightOf(bar?.badHeight ?? 0);
        return [
          <rect
            key={at}
            class={bar?.tone ?? "none"}
            x={at * (WIDTH + GAP)}
            y={HEIGHT - height}
            width={WIDTH}
            height={height}
            rx="1.5"
          >
            {bar === undefined ? null : <title>{bar.title}</title>}
          </rect>,
          (bar?.badHeight ?? 0) === 0 ? null : (
            <rect
              key={`bad ${at}`}
              class="bad"
              x={at * (WIDTH + GAP)}
              y={HEIGHT - bad}
              width={WIDTH}
              height={bad}
            />
          ),
        ];
      })}
    </svg>
  );
}

function heightOf(share: number): number {
  return Math.max(LEAST, Math.min(1, share)) * HEIGHT;
}
