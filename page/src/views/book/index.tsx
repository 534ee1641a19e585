import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Shared } from "../../app";
import type { Answer, Request } from "../../engine/ask";
import { useAsk } from "../../engine/ask";
import type { BookResults, Quantity } from "../../engine/schema";
import { AnswerFrame, Head } from "../../parts/answer";
import { Tag } from "../../parts/basics";
import { Card } from "../../parts/card";
import { Scroll } from "../../parts/scroll";
import { int, quantity } from "../../text/format";
import { write } from "../../url";
import type { Place, Query } from "../../url";
import { chapters, home } from "./chapters";
import { FigureCard } from "./figure";

const number = (value: Quantity | number | boolean | string | null): string =>
  value !== null && typeof value === "object"
    ? quantity(value.value, value.unit)
    : typeof value === "number"
      ? quantity(value, "")
      : value === null
        ? "–"
        : String(value);

const few = 12;

export function BookView({ place, share }: { place: Place; share: (shared: Shared) => void }): JSX.Element {
  const { query } = place;
  const chapter = chapters.find((one) => one.id === query.chapter) ?? chapters[0]!;
  const request: Request<"book"> = { verb: "book", arguments: { chapter: chapter.id } };
  const figures: Request<"book"> = { verb: "book", arguments: { chapter: chapter.id, figures: true } };
  const asked = useAsk(figures);
  const checked = useAsk(asked.busy ? null : request); // its requests take a while
  useEffect(
    () => share({ request: request as Request, answer: checked.answer as Answer | undefined }),
    [checked.answer, chapter.id],
  );
  const look: Query = Object.fromEntries(["theme", "units"].flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  return (
    <div class="view">
      <nav class="ask open chapters" aria-label="Chapters">
        <ol class="list">
          {chapters.map((one) => (
            <li key={one.id}>
              <a
                href={write({ view: "book", query: { ...look, chapter: one.id } })}
                aria-current={one === chapter ? "page" : undefined}
              >
                <span class="muted">{one.number}</span>
                {one.name}
              </a>
            </li>
          ))}
        </ol>
        <p class="hint">
          The plots of the textbook “How to Scale Your Model”, asked of the engine, so that they hold for other chips
          and models, too. The words are ours.
        </p>
      </nav>
      <AnswerFrame asked={asked} request={figures as Request}>
        {(answer) => (
          <BookAnswer
            key={chapter.id}
            figures={answer.results.figures ?? []}
            checked={checked.busy ? undefined : checked.answer?.results}
            chapter={chapter}
            query={query}
            look={look}
            current={!asked.busy}
          />
        )}
      </AnswerFrame>
    </div>
  );
}

function BookAnswer({
  figures: all,
  checked,
  chapter,
  query,
  look,
  current,
}: {
  figures: NonNullable<BookResults["figures"]>;
  checked: BookResults | undefined;
  chapter: (typeof chapters)[number];
  query: Query;
  look: Query;
  current: boolean;
}): JSX.Element {
  const figures = all.map((figure, index) => ({ figure, index })).filter(({ figure }) => figure.chapter === chapter.id);
  return (
    <>
      <Head sub={<span>{chapter.words}</span>}>
        {chapter.number}. {chapter.name}
      </Head>
      <p>
        <a href={`${home}${chapter.id}`} rel="noreferrer">
          Read the chapter
        </a>
      </p>
      {current && (
        <div class="cards">
          {figures.map(({ figure, index }) => (
            <FigureCard key={`${chapter.id}${figure.title}`} figure={figure} index={index} query={query} look={look} />
          ))}
        </div>
      )}
      {checked ? (
        <WorkedAnswers results={checked} />
      ) : (
        <Card title="Worked answers">
          <p class="muted">Being checked…</p>
        </Card>
      )}
    </>
  );
}

function WorkedAnswers({ results }: { results: BookResults }): JSX.Element {
  const [all, showAll] = useState(false);
  const list = results.checks ?? [];
  const checks = all ? list : list.slice(0, few);
  return (
    <Card
      title="Worked answers"
      note={`${int(results.passed)} of ${int((results.passed ?? 0) + (results.failed ?? 0))} reproduced${results.left_out ? `, ${int(results.left_out)} left out` : ""}`}
      table={() => [
        ["fact", "expected", "got", "tolerance", "request", "path"],
        ...list.map((one) => [one.id, number(one.expected), number(one.got), one.tolerance, one.request, one.path]),
      ]}
    >
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Fact</th>
              <th class="n">In the book</th>
              <th class="n">Here</th>
              <th>
                <span class="sr">Reproduced</span>
              </th>
              <th>Request</th>
              <th>Path</th>
            </tr>
          </thead>
          <tbody>
            {checks.map((one) => (
              <tr key={one.id}>
                <td>{one.id}</td>
                <td class="n">{number(one.expected)}</td>
                <td class="n">{number(one.got)}</td>
                <td>
                  <Tag verdict={one.ok ? "fits" : "no"}>{one.ok ? one.tolerance : "differs"}</Tag>
                </td>
                <td class="mono tiny">{one.request}</td>
                <td class="mono tiny muted">{one.path}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {list.length > few && (
        <p class="after">
          <button type="button" class="btn" aria-expanded={all} onClick={() => showAll(!all)}>
            {all ? "Show fewer" : `Show all ${int(list.length)}`}
          </button>
        </p>
      )}
    </Card>
  );
}
