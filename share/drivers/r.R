# r.R - runs cells of R, one after the other, in the global environment. The channel is descriptor 3
# and its lines are those of docs/languages.md.
#
# R cannot read from a descriptor, so two `cat` do it for us; they do not mind interrupts. All of this
# file lives in an environment of its own above base: what the user defines or removes is elsewhere.
#
# Interrupts are suspended in our own code. One that comes between two cells is delivered and ignored
# before the next one starts.
local(envir = new.env(parent = baseenv()), {
  LINE_MAX <- 16 * 2^20
  TEXT_MAX <- 2^20
  ERROR_MAX <- 256 * 1024
  CELLS_MAX <- 1e5 # of a data frame that is sent as `data`

  from <- to <- NULL
  count <- 0L
  cell <- NULL # the id of the one that runs
  plots <- NULL # the folder of its plots, once there is one
  queue <- list()
  calls <- list() # where it failed

  # JSON ----------------------------------------------------------------------------------------

  escape <- function(point) {
    if (point <= 0xffff) return(sprintf("\\u%04x", point))
    point <- point - 0x10000
    sprintf("\\u%04x\\u%04x", 0xd800 + point %/% 1024, 0xdc00 + point %% 1024)
  }

  json_string <- function(text) {
    if (length(text) != 1 || is.na(text)) return("null")
    text <- enc2utf8(as.character(text))
    if (!validUTF8(text)) text <- iconv(text, "UTF-8", "UTF-8", sub = "byte")
    points <- utf8ToInt(text)
    odd <- points < 32 | points > 126 | points == 34 | points == 92
    if (any(odd)) {
      letters <- intToUtf8(points, multiple = TRUE)
      kinds <- unique(points[odd])
      letters[odd] <- vapply(kinds, escape, "")[match(points[odd], kinds)]
      text <- paste(letters, collapse = "")
    }
    paste0('"', text, '"')
  }

  json_object <- function(...) {
    fields <- c(...) # already JSON
    paste0("{", paste0('"', names(fields), '":', fields, collapse = ","), "}")
  }

  json_column <- function(column) {
    if (is.logical(column)) items <- tolower(as.character(column))
    else if (is.numeric(column) && !is.factor(column) && is.null(attr(column, "class")))
      items <- ifelse(is.finite(column), sprintf("%.15g", as.numeric(column)), NA)
    else items <- vapply(as.character(column), json_string, "")
    items[is.na(items)] <- "null"
    paste0("[", paste(items, collapse = ","), "]")
  }

  # The value of a JSON string with its quotes. R's own strings know all its escapes but two.
  unescape <- function(token) {
    text <- substr(token, 2, nchar(token) - 1)
    if (!grepl("\\", text, fixed = TRUE)) return(text)
    text <- gsub("(?<!\\\\)((?:\\\\\\\\)*)\\\\/", "\\1/", text, perl = TRUE)
    pair <- "(?<!\\\\)(?:\\\\\\\\)*\\K\\\\u([dD][89abAB][0-9a-fA-F]{2})\\\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    found <- gregexpr(pair, text, perl = TRUE)
    regmatches(text, found) <- lapply(regmatches(text, found), function(pairs) vapply(pairs, function(p) {
      high <- strtoi(substr(p, 3, 6), 16L)
      low <- strtoi(substr(p, 9, 12), 16L)
      sprintf("\\U%08x", (high - 0xd800) * 1024 + low - 0xdc00 + 0x10000)
    }, ""))
    eval(parse(text = paste0('"', text, '"'), keep.source = FALSE, encoding = "UTF-8")[[1]])
  }

  # list(op, id, code, env), or NULL
  parse_message <- function(line) tryCatch({
    pattern <- '"(?:[^"\\\\]++|\\\\.)*+"|[{}:,\\[\\]]|[^\\s"{}:,\\[\\]]+'
    tokens <- regmatches(line, gregexpr(pattern, line, perl = TRUE))[[1]]
    message <- list(env = list())
    depth <- 0
    key <- ""
    for (i in seq_along(tokens)) {
      token <- tokens[[i]]
      if (token == "{") depth <- depth + 1
      else if (token == "}") depth <- depth - 1
      else if (substr(token, 1, 1) == '"') {
        if (i < length(tokens) && tokens[[i + 1]] == ":") key <- unescape(token)
        else if (depth == 1 && key %in% c("op", "id", "code", "text")) message[[key]] <- unescape(token)
        else if (depth == 2) message$env[[key]] <- unescape(token)
      }
    }
    # A line that was cut is none.
    whole <- tokens[[1]] == "{" && tokens[[length(tokens)]] == "}" && depth == 0
    if (is.null(message$op) || is.null(message$id) || !whole) NULL else message
  }, error = function(e) NULL)

  # The channel ---------------------------------------------------------------------------------

  say <- function(line) {
    writeLines(line, to, useBytes = TRUE)
    flush(to)
  }

  emit <- function(ev, ...) say(json_object(ev = json_string(ev), ...))

  read_message <- function() {
    if (length(queue)) {
      first <- queue[[1]]
      queue <<- queue[-1]
      return(first)
    }
    repeat {
      line <- readLines(from, n = 1, warn = FALSE, encoding = "UTF-8")
      if (!length(line)) base::quit(save = "no", runLast = FALSE)
      if (nchar(line, "bytes") > LINE_MAX) {
        id <- regmatches(substr(line, 1, 4096), regexec('"id": ?"([^"\\\\]*)"', substr(line, 1, 4096)))[[1]]
        return(list(op = "long", id = if (length(id) == 2) id[[2]] else ""))
      }
      message <- parse_message(line)
      if (is.null(message)) cat("driver: not a message:", substr(line, 1, 80), "\n", file = stderr())
      else return(message)
    }
  }

  ask <- function(prompt = "") {
    if (is.null(cell)) return("")
    suspendInterrupts(emit("input", id = json_string(cell), prompt = json_string(prompt), password = "false"))
    repeat {
      message <- read_message()
      if (message$op == "input" && message$id == cell) return(sub("\n$", "", message$text %||% ""))
      if (message$op == "run" && length(queue) < 64) queue <<- c(queue, list(message))
    }
  }

  `%||%` <- function(a, b) if (is.null(a)) b else a

  # Results -------------------------------------------------------------------------------------

  base64 <- function(bytes) {
    pad <- (3 - length(bytes) %% 3) %% 3
    m <- matrix(c(as.integer(bytes), integer(pad)), nrow = 3)
    v <- m[1, ] * 65536 + m[2, ] * 256 + m[3, ]
    alphabet <- c(LETTERS, letters, 0:9, "+", "/")
    digits <- alphabet[rbind(v %/% 262144, v %/% 4096 %% 64, v %/% 64 %% 64, v %% 64) + 1]
    if (pad) digits[length(digits) - seq_len(pad) + 1] <- "="
    paste(digits, collapse = "")
  }

  send_result <- function(value, main) {
    text <- paste(utils::capture.output(print(value)), collapse = "\n")
    cut <- character()
    if (nchar(text) > TEXT_MAX) {
      text <- substr(text, 1, TEXT_MAX)
      cut <- '"text/plain"'
    }
    extra <- "{}"
    if (is.data.frame(value)) {
      if (prod(dim(value)) > CELLS_MAX) cut <- c(cut, '"data"')
      else if (length(value)) {
        columns <- paste0(vapply(make.unique(names(value)), json_string, ""), ":", vapply(value, json_column, ""), collapse = ",")
        extra <- paste0('{"data":{', columns, "}}")
      }
    }
    fields <- c(id = json_string(cell), main = if (main) "true" else "false",
                data = paste0('{"text/plain":', json_string(text), "}"), extra = extra)
    if (length(cut)) fields <- c(fields, truncated = paste0("[", paste(cut, collapse = ","), "]"))
    suspendInterrupts(emit("result", fields))
  }

  open_device <- function(...) {
    plots <<- tempfile("plots")
    dir.create(plots)
    grDevices::png(file.path(plots, "%05d.png"), width = 800, height = 600, res = 110,
                   type = if (capabilities("cairo")) "cairo" else getOption("bitmapType"))
  }

  send_plots <- function() {
    if (is.null(plots)) return()
    grDevices::graphics.off()
    for (file in sort(list.files(plots, full.names = TRUE))) {
      size <- file.size(file)
      if (size > LINE_MAX * 3 / 4 - 4096) next
      bytes <- readBin(file, "raw", size)
      emit("result", id = json_string(cell), main = "false", extra = "{}",
           data = paste0('{"image/png":"', base64(bytes), '","text/plain":"<plot>"}'))
    }
    unlink(plots, recursive = TRUE)
    plots <<- NULL
  }

  # Errors --------------------------------------------------------------------------------------

  frames_of <- function(lines, name) {
    own <- Filter(function(call) !is.null(attr(call, "srcref")), calls)
    frames <- lapply(utils::tail(own, 100), function(call) {
      ref <- attr(call, "srcref")
      at <- as.integer(ref)[1]
      file <- attr(ref, "srcfile")$filename %||% ""
      json_object(file = json_string(file), line = at, name = json_string(paste(deparse(call, nlines = 1), collapse = "")),
                  text = json_string(if (identical(file, name)) trimws(lines[at] %||% "") else ""))
    })
    paste0("[", paste(unlist(frames), collapse = ","), "]")
  }

  send_error <- function(e, lines, name) {
    kind <- if (inherits(e, "interrupt")) "Interrupted" else class(e)[[1]]
    if (inherits(e, "interrupt")) value <- "the cell was interrupted"
    else value <- substr(tryCatch(conditionMessage(e), error = function(e) ""), 1, ERROR_MAX)
    call <- if (inherits(e, "interrupt")) NULL else conditionCall(e)
    where <- if (is.null(call) || identical(call[[1]], quote(eval))) "Error: " else paste0("Error in ", paste(deparse(call, nlines = 1), collapse = ""), " : ")
    frames <- tryCatch(frames_of(lines, name), error = function(e) "[]")
    emit("error", id = json_string(cell), name = json_string(kind), value = json_string(value), frames = frames,
         text = json_string(paste0(where, value)))
  }

  leave <- function(save = "no", status = 0, runLast = TRUE)
    stop(structure(class = c("SystemExit", "error", "condition"), list(message = as.character(status), call = NULL)))

  # A cell --------------------------------------------------------------------------------------

  evaluate <- function(code, lines, name) {
    expressions <- parse(text = lines, keep.source = TRUE, srcfile = srcfilecopy(name, lines))
    for (i in seq_along(expressions)) {
      out <- withVisible(eval(expressions[i], globalenv()))
      if (!out$visible) next
      if (i == length(expressions)) send_result(out$value, TRUE)
      else print(out$value)
    }
  }

  attempt <- function(code, lines, name) {
    calls <<- list()
    tryCatch(withCallingHandlers({
      allowInterrupts(evaluate(code, lines, name))
      NULL
    }, error = function(e) calls <<- sys.calls()),
    error = function(e) e, interrupt = function(e) e)
  }

  set_env <- function(env) {
    if (!length(env)) return(NULL)
    before <- Sys.getenv(names(env), unset = NA, names = TRUE)
    do.call(Sys.setenv, env)
    before
  }

  unset_env <- function(before) {
    for (name in names(before)) {
      if (is.na(before[[name]])) Sys.unsetenv(name)
      else do.call(Sys.setenv, stats::setNames(list(before[[name]]), name))
    }
  }

  end <- function(status) {
    emit("end", id = json_string(cell), status = json_string(status), count = count)
    cell <<- NULL
  }

  refuse <- function(name, why) {
    emit("error", id = json_string(cell), name = json_string(name), value = json_string(why), frames = "[]",
         text = json_string(paste0(name, ": ", why)))
    end("error")
  }

  run <- function(code, env) {
    count <<- count + 1L
    name <- sprintf("<cell %d>", count)
    lines <- strsplit(code, "\n", fixed = TRUE)[[1]]
    options(device = open_device)
    before <- set_env(env)
    failed <- attempt(code, lines, name)
    tryCatch(send_plots(), error = function(e) NULL)
    if (!is.null(failed)) send_error(failed, lines, name)
    unset_env(before)
    flush(stdout())
    end(if (is.null(failed)) "ok" else if (inherits(failed, "interrupt")) "interrupted" else "error")
  }

  handle <- function(message) {
    if (message$op == "input") return()
    cell <<- message$id
    if (message$op == "long") refuse("CellTooLarge", sprintf("the message has more than %d MiB", LINE_MAX / 2^20))
    else if (message$op != "run" || is.null(message$code)) refuse("BadMessage", "code is a string, env an object")
    else run(message$code, message$env)
  }

  main <- function() {
    if (!isTRUE(l10n_info()$`UTF-8`)) Sys.setlocale("LC_CTYPE", "C.UTF-8")
    options(warn = 1, keep.source = TRUE, crayon.enabled = FALSE, cli.num_colors = 1L)
    from <<- pipe("trap '' INT; exec cat <&3", "r")
    to <<- pipe("trap '' INT; exec cat >&3", "w")
    names <- list(q = leave, quit = leave, readline = ask,
                  display = function(...) for (value in list(...)) send_result(value, FALSE))
    attach(names, name = "cells", warn.conflicts = FALSE)
    emit("ready", language = json_string("r"), version = json_string(paste(R.version$major, R.version$minor, sep = ".")))
    repeat suspendInterrupts({
      message <- read_message()
      tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL)
      handle(message)
    })
  }

  main()
})
