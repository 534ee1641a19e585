/* Prints the answer to the request in the first argument; by C99, with nothing but assay/c.h. */
#include <assay/c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  assay_engine* engine = assay_open(NULL);
  assay_answer* answer = assay_ask(engine, argv[1], strlen(argv[1]), ASSAY_INDENTED);
  const int status = assay_status(answer);
  fwrite(assay_text(answer), 1, assay_size(answer), stdout);

  /* Several at once are answered alike; a file that a request names is out of reach. */
  const char* const requests[] = {argv[1], "nonsense", "{\"verb\": \"models\", \"arguments\": {\"model\": \"/tmp\"}}"};
  const size_t sizes[] = {strlen(requests[0]), strlen(requests[1]), strlen(requests[2])};
  assay_answer* answers[3];
  assay_ask_all(engine, requests, sizes, 3, 2, ASSAY_INDENTED, answers);
  if (strcmp(assay_text(answers[0]), assay_text(answer)) != 0) return 101;
  if (assay_status(answers[1]) == 0 || assay_status(answers[2]) == 0) return 102;
  for (int i = 0; i < 3; ++i) assay_free(answers[i]);
  assay_free(answer);

  /* Stopped, a search ends with what it has, and says so; afterwards all is as before. */
  const char* search = "{\"verb\": \"train\", \"arguments\": {\"model\": \"llama-3-70b\", \"on\": \"h100-sxm:1024\", "
                       "\"batch\": \"4Mi\", \"seq\": 4096}}";
  assay_stop(1);
  answer = assay_ask(engine, search, strlen(search), ASSAY_ONE_LINE);
  if (!strstr(assay_text(answer), "interrupted")) return 103;
  assay_free(answer);
  assay_stop(0);

  /* What a request wants to be written comes with the answer. */
  const assay_reach reach = {1, NULL, NULL, NULL, NULL};
  assay_engine* open = assay_open(&reach);
  const char* timeline = "{\"verb\": \"train\", \"arguments\": {\"model\": \"llama-3-8b\", \"on\": \"h100-sxm:8\", \"batch\": "
                         "\"64seq\", \"seq\": 4096, \"tp\": 8, \"timeline\": \"step.json\"}}";
  answer = assay_ask(open, timeline, strlen(timeline), ASSAY_SCREEN);
  size_t size = 0;
  if (assay_files(answer) != 1 || strcmp(assay_file_path(answer, 0), "step.json") != 0) return 104;
  if (assay_file_bytes(answer, 0, &size)[0] != '{' || size < 100) return 105;
  assay_free(answer);
  assay_close(open);

  answer = assay_schema("train");
  if (assay_status(answer) != 0 || assay_version()[0] == '\0' || assay_catalogue_date()[0] != '2') return 106;
  assay_free(answer);
  assay_close(engine);
  return status;
}
