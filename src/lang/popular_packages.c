/* popular_packages.c - see popular_packages.h. */
#include "lang/popular_packages.h"

static const char *const pip[] = {
	/* clang-format off */
	"aiohttp", "altair", "anthropic", "asyncpg", "attrs", "beautifulsoup4", "black", "bokeh",
	"boto3", "botocore", "catboost", "celery", "certifi", "cffi", "charset-normalizer", "click",
	"colorama", "cryptography", "cython", "dash", "dask", "datasets", "django",
	"djangorestframework", "duckdb", "faker", "fastapi", "flask", "fsspec", "geopandas",
	"gensim", "gradio", "grpcio", "gunicorn", "h5py", "httpx", "huggingface-hub", "idna",
	"imageio", "ipykernel", "ipython", "jinja2", "joblib", "jsonschema", "jupyter", "keras",
	"langchain", "lightgbm", "llvmlite", "loguru", "lxml", "markdown", "matplotlib", "mypy",
	"networkx", "nltk", "numba", "numpy", "openai", "opencv-python", "openpyxl", "orjson",
	"packaging", "pandas", "paramiko", "pillow", "pip", "plotly", "polars", "protobuf",
	"psutil", "psycopg2", "psycopg2-binary", "pyarrow", "pydantic", "pygame", "pygments",
	"pyjwt", "pymongo", "pymysql", "pyopenssl", "pypdf", "pyspark", "pytest", "python-dateutil",
	"python-docx", "python-dotenv", "pytorch-lightning", "pytz", "pyyaml", "redis", "regex",
	"requests", "rich", "ruff", "scikit-image", "scikit-learn", "scipy", "scrapy", "seaborn",
	"selenium", "sentence-transformers", "sentencepiece", "setuptools", "shapely", "six",
	"spacy", "sqlalchemy", "starlette", "statsmodels", "streamlit", "sympy", "tabulate",
	"tenacity", "tensorflow", "tiktoken", "tokenizers", "torch", "torchaudio", "torchvision",
	"tornado", "tqdm", "transformers", "typer", "typing-extensions", "urllib3", "uvicorn",
	"virtualenv", "websockets", "werkzeug", "wheel", "xgboost", "xlrd", "xlsxwriter", NULL
	/* clang-format on */
};

static const char *const npm[] = {
	/* clang-format off */
	"@types/node", "ajv", "async", "axios", "babel-core", "bcrypt", "bluebird", "body-parser",
	"chai", "chalk", "cheerio", "classnames", "commander", "compression", "cookie-parser",
	"core-js", "cors", "cross-env", "csv-parse", "d3", "date-fns", "dayjs", "debug", "dotenv",
	"ejs", "esbuild", "eslint", "express", "fastify", "form-data", "fs-extra", "glob",
	"graphql", "handlebars", "helmet", "inquirer", "ioredis", "is-odd", "jest", "jquery",
	"js-yaml", "jsonwebtoken", "knex", "left-pad", "lodash", "marked", "minimist", "mkdirp",
	"mocha", "moment", "mongodb", "mongoose", "morgan", "mysql2", "nanoid", "next", "node-fetch",
	"nodemon", "openai", "ora", "passport", "pg", "pino", "playwright", "postcss", "prettier",
	"prisma", "puppeteer", "ramda", "react", "react-dom", "react-router-dom", "redis", "redux",
	"rimraf", "rollup", "rxjs", "semver", "sharp", "socket.io", "sqlite3", "styled-components",
	"svelte", "tailwindcss", "three", "ts-node", "tslib", "typescript", "underscore", "undici",
	"uuid", "validator", "vite", "vitest", "vue", "webpack", "winston", "ws", "xml2js", "yargs",
	"zod", NULL
	/* clang-format on */
};

static const char *const gem[] = {
	/* clang-format off */
	"activerecord", "activesupport", "bcrypt", "bundler", "capistrano", "concurrent-ruby",
	"devise", "faraday", "httparty", "i18n", "jekyll", "json", "minitest", "nokogiri", "pg",
	"pry", "puma", "rack", "rails", "rake", "redis", "rest-client", "rspec", "rubocop",
	"sequel", "sidekiq", "sinatra", "sqlite3", "thor", "zeitwerk", NULL
	/* clang-format on */
};

static const char *const cargo[] = {
	/* clang-format off */
	"anyhow", "axum", "bytes", "chrono", "clap", "futures", "hyper", "itertools", "log",
	"ndarray", "num", "once_cell", "rand", "rayon", "regex", "reqwest", "serde", "serde_json",
	"syn", "thiserror", "tokio", "toml", "tracing", "uuid", NULL
	/* clang-format on */
};

static const char *const go[] = {
	"github.com/gin-gonic/gin",    "github.com/google/uuid",     "github.com/gorilla/mux",
	"github.com/labstack/echo",    "github.com/sirupsen/logrus", "github.com/spf13/cobra",
	"github.com/stretchr/testify", "golang.org/x/crypto",        "golang.org/x/net",
	"golang.org/x/sync",           "golang.org/x/text",          NULL
};

static const char *const apt[] = {
	/* clang-format off */
	"build-essential", "cmake", "curl", "ffmpeg", "fonts-dejavu", "gdal-bin", "ghostscript",
	"git", "graphviz", "imagemagick", "jq", "libpq-dev", "pandoc", "poppler-utils", "ripgrep",
	"sqlite3", "tesseract-ocr", "unzip", "wget", "zip", NULL
	/* clang-format on */
};

const char *const *const common_names[PM_COUNT] = {
	[PM_PIP] = pip,     [PM_NPM] = npm, [PM_GEM] = gem,
	[PM_CARGO] = cargo, [PM_GO] = go,   [PM_APT] = apt,
};
