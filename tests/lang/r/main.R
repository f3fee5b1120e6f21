source("other.R")
args <- commandArgs(TRUE)
mode <- args[1]
if (mode == "talk") {
  cat(greeting(), "\n", sep = "")
  for (a in args[-1]) cat("arg: ", a, "\n", sep = "")
  for (line in readLines(file("stdin"))) cat("stdin: ", line, "\n", sep = "")
  quit(status = 7)
} else if (mode == "fault") {
  stop("boom ä")
} else if (mode == "big") {
  for (i in 1:10) cat(strrep("x", 1048576))
} else if (mode == "loop") {
  while (TRUE) {}
} else if (mode == "memory") {
  all <- list()
  repeat all[[length(all) + 1]] <- rep(1, 1048576)
}
