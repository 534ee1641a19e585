import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Answer } from "../../../engine/ask";
import { v } from "../../../engine/request";
import type {
  Arguments,
  ChipsResults,
  ClustersResults,
  CollectiveResults,
  LayerResults,
  ModelsResults,
  RooflineResults,
  RunResults,
  ScalingResults,
  ServeResults,
  ShardResults,
  TrainResults,
  TransferResults,
} from "../../../engine/schema";
import { Figures, Tag } from "../../../parts/basics";
import { Scroll } from "../../../parts/scroll";
import { bytes, sentence, time } from "../../../text/format";
import { MatrixActivity } from "../../matrix";
import { TopologyCard } from "../../network/topology";
import { TimelineCard } from "../../plan/timeline";
import { TimeCard } from "../../plan/time";
import { ModelsPicture, ChipPicture } from "./catalogue";
import { RooflinePicture, ScalingPicture } from "./rooflines";
import { ServePicture } from "./serving";
import { CollectivePicture, LayerPicture, ShardPicture } from "./sharding";

export function Picture({
  verb,
  answer,
  args,
  title,
}: {
  verb: string;
  answer: Answer;
  args: Arguments;
  title: string;
}): JSX.Element {
  const r = answer.results as unknown;
  switch (verb) {
    case "roofline":
      return (
        <RooflinePicture
          results={r as RooflineResults}
          letter={String(args.vary ?? "").split("=")[0] ?? ""}
          growth={title.includes("grows")}
        />
      );
    case "collective":
      return <CollectivePicture results={r as CollectiveResults} rate={title.includes("bandwidth against")} />;
    case "serve":
      return <ServePicture results={r as ServeResults} picture={String(args.picture ?? "")} />;
    case "scaling":
      return <ScalingPicture results={r as ScalingResults} times={args.picture === "time"} />;
    case "models":
      return <ModelsPicture results={r as ModelsResults} intensity={title.includes("intensity")} />;
    case "shard":
      return <ShardPicture results={r as ShardResults} />;
    case "layer":
      return <LayerPicture results={r as LayerResults} letter={String(args.vary ?? "").split("=")[0] ?? ""} />;
    case "chips":
      return <ChipPicture results={r as ChipsResults} />;
    case "clusters":
      return <TopologyCard results={r as ClustersResults} />;
    case "systolic":
      return <MatrixActivity answer={answer as unknown as Answer<"systolic">} />;
    case "transfer":
      return <TransferPicture results={r as TransferResults} />;
    case "run":
      return <RunPicture results={r as RunResults} />;
    case "train":
      return <TrainPicture results={r as TrainResults} />;
    default:
      return <p>{sentence(answer.headline)}</p>;
  }
}

function TransferPicture({ results }: { results: TransferResults }): JSX.Element {
  const rows: [string, JSX.Element | string][] = [["Time", time(v(results.time.lower))]];
  if (results.residency)
    rows.push([
      "On the chip",
      <>
        {bytes(v(results.residency.bytes_per_chip))} of {bytes(v(results.residency.capacity))}{" "}
        <Tag verdict={results.residency.fits ? "fits" : "no"}>{results.residency.fits ? "Fits" : "Does not fit"}</Tag>
      </>,
    ]);
  if (results.meanwhile)
    rows.push([
      `Behind ${time(v(results.meanwhile.time))} of other work`,
      <Tag verdict={results.meanwhile.hidden ? "fits" : "tight"}>
        {results.meanwhile.hidden ? "Hidden" : `${time(v(results.meanwhile.exposed))} exposed`}
      </Tag>,
    ]);
  return <Figures rows={rows} />;
}

/** Requests that a small model answered. */
function RunPicture({ results }: { results: RunResults }): JSX.Element {
  if (!results.requests)
    return <Figures rows={(results.steps ?? []).map((step) => [step.text, bytes(v(step.received))] as const)} />;
  return (
    <>
      {results.tokens_equal !== undefined && (
        <p>
          <Tag verdict={results.tokens_equal ? "fits" : "no"}>
            {results.tokens_equal ? "The same tokens as on one device" : "Other tokens than on one device"}
          </Tag>
        </p>
      )}
      <Scroll>
        <table class="rows small">
          <thead>
            <tr>
              <th>Prompt</th>
              <th>Answer</th>
              <th class="n">From step</th>
              <th class="n">To step</th>
            </tr>
          </thead>
          <tbody>
            {results.requests.map((one, i) => (
              <tr key={i}>
                <td class="mono tiny">{one.prompt}</td>
                <td class="mono tiny">{one.answer}</td>
                <td class="n">{one.started}</td>
                <td class="n">{one.finished}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

function TrainPicture({ results }: { results: TrainResults }): JSX.Element {
  const timeline = useMemo(() => results.timeline, [results]);
  return timeline ? <TimelineCard timeline={timeline} /> : <TimeCard results={results} />;
}
